"""Each RPC has its routes, and no route takes what belongs to somebody else."""

import re
from collections import Counter

import pytest

from cronring.controller.api.policy import POLICY
from cronring.controller.api.rest.bindings import OURS, UnroutedMethodError, bindings, bindings_of
from cronring.protos.cronring.v1 import deployments_pb2, jobs_pb2, queues_pb2
from cronring.protos.runner.v1 import runner_pb2

FACADE = ("/api/v1/jobs", "/api/v1/executions", "/api/v1/scheduler")


def test_every_rpc_of_people_has_a_route() -> None:
    routed, allowed = {each.rpc for each in bindings()}, {path for path in POLICY if path.startswith(OURS)}
    assert routed - allowed == set(), "each wants its line in controller/api/policy.py"
    assert allowed - routed == set(), "each wants its google.api.http option in the .proto"


def test_an_rpc_without_a_route_is_refused() -> None:
    service = runner_pb2.DESCRIPTOR.services_by_name["Renewals"]
    with pytest.raises(UnroutedMethodError, match=r"Renewals\.Renew has no google\.api\.http"):
        bindings_of(service.methods_by_name["Renew"])


def test_routes_keep_to_their_own_prefix_and_differ() -> None:
    found = bindings()
    assert all(each.path.startswith(("/api/v1/cron/", "/api/v1/events", "/api/v1/queues")) for each in found)
    assert not [each.path for each in found if each.path.startswith(FACADE)]
    shapes = Counter((each.verb, re.sub(r"\{\w+\}", "{}", each.path)) for each in found)
    assert [shape for shape, times in shapes.items() if times > 1] == []


def test_success_is_201_only_where_something_new_was_made() -> None:
    made = {each.method.name: each for each in bindings() if each.makes}
    assert {name for name, each in made.items() if each.may_make_nothing} == {
        "CreateDeployment", "CreateJob", "CreateJobs"
    }  # fmt: skip
    assert {"AddWebhook", "CreateToken", "PutMessage"} <= set(made)
    many = jobs_pb2.ManyJobsResponse
    for name, answer, new in (
        ("PutMessage", queues_pb2.PutMessageResponse(id=1), True),
        ("CreateJob", jobs_pb2.Job(), True),
        ("CreateJob", jobs_pb2.Job(unchanged=True), False),
        ("CreateJob", jobs_pb2.Job(updated=True), False),
        ("CreateJobs", many(changed=1, failed=1), True),
        ("CreateJobs", many(failed=1, rolled_back=True), False),
        ("CreateJobs", many(changed=1, results=[jobs_pb2.JobResult(updated=True)]), False),
        ("CreateDeployment", deployments_pb2.CreateDeploymentResponse(created=True), True),
        ("CreateDeployment", deployments_pb2.CreateDeploymentResponse(), False),
    ):
        assert made[name].has_made(answer) is new, (name, answer)


def test_what_only_reads_is_got_and_the_rest_is_not() -> None:
    read = re.compile(
        r"(Count|Get|List|Watch|Follow|Read|Diagnose|WhoAmI|Audit|Why|Poll|Suggest|Export|Explain|Describe|Compare)"
    )
    for each in bindings():
        advice = f"{each.rpc} is a {each.verb}: what only reads is a GET, and its name begins with {read.pattern}"
        assert bool(read.match(each.method.name)) == (each.verb == "GET"), advice
