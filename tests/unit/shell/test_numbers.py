"""No number that somebody gives is silently another: 0 is a value, refused, or can be told from nothing given."""

from typing import Any

import click
import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from cronring.cli.options import Duration, OrUnset
from cronring.cli.root import cli
from cronring.controller.api.job_specs import check_running, read_policy
from cronring.controller.api.problems import InvalidRequest, Violations
from cronring.controller.api.requests import number
from cronring.protos.cronring.v1 import cluster_pb2, jobs_pb2, schema_pb2
from cronring.protos.modules import policy_message, policy_of, raw_policy
from cronring.schema.policy_model import FIELDS, Policy
from tests.unit.cli.test_hostile import commands
from tests.unit.shell.test_caps import services

NUMBERS = {
    FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_UINT32, FieldDescriptor.TYPE_UINT64,
    FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT,
}  # fmt: skip
# Without presence: what 0 is. Whatever else comes in needs `optional`.
ZERO = {
    "after_id": "ids begin with 1, so it means what it says",
    "from_offset": "the beginning",
    "slot": "the first slot",
    "id": "refused",
    "lease": "that of a take which found nothing: it has no message",
    "for_ms": "refused",
    "SetLimitRequest.max_concurrent": "refused",
    "Verb.line": "not known; nothing depends on it",
}
TIMESTAMPS = {"google.protobuf.Timestamp"}


def numbers() -> dict[str, FieldDescriptor]:
    """Of all that people ask for, by message and name."""
    found: dict[str, FieldDescriptor] = {}
    todo: list[Any] = [
        method.input_type
        for service in services()
        if service.full_name.startswith("cronring.v1.")
        for method in service.methods
    ]
    seen: set[str] = set(TIMESTAMPS)
    while todo:
        message: Descriptor = todo.pop()
        if message.full_name in seen:
            continue
        seen.add(message.full_name)
        for field in message.fields:
            if field.type in NUMBERS:
                found[f"{message.name}.{field.name}"] = field
            elif field.message_type is not None:
                todo.append(field.message_type)
    return found


def test_a_number_that_may_be_absent_says_so():
    found = numbers()
    assert {"Policy.max_concurrent", "JobSpec.timeout_ms", "ListJobsRequest.page_size"} <= set(found)
    silent = [
        name
        for name, field in found.items()
        if not (field.has_presence or field.is_repeated) and name not in ZERO and field.name not in ZERO
    ]
    assert silent == []


@pytest.mark.parametrize("given", [0, -1, 301_000_000])
def test_a_number_out_of_range_names_the_range_and_how_to_unset(given: int):
    with pytest.raises(InvalidRequest) as refused:
        number(cluster_pb2.ListDueRequest(within_ms=given), "within_ms", 300_000, 86_400_000)
    words = f"is {given}; it must be from 1 to 86400000; leave it out for 300000, the default"
    assert refused.value.violations == [("within_ms", words)]
    assert number(cluster_pb2.ListDueRequest(), "within_ms", 300_000, 86_400_000) == 300_000


def test_no_places_at_all_are_not_the_default():
    message = schema_pb2.Policy(overlap="allow", max_concurrent=0, history_runs=0)
    problems = Violations()
    read_policy(raw_policy(message), problems)
    assert problems == [
        (f"spec.policy.{name}", f"0 is outside 1 to {most} (for the default, leave it out)")
        for name, most in (("max_concurrent", 10_000), ("history_runs", 1_000_000))
    ]
    assert policy_of(message).max_concurrent == 0  # a runner's module is judged by what it says, too
    again = policy_message(policy_of(message))
    assert again is not None
    assert again.HasField("max_concurrent")
    assert Policy(overlap="allow").concurrency == 10


def test_a_timeout_of_nothing_is_not_the_verbs():
    problems = Violations()
    check_running(jobs_pb2.JobSpec(timeout_ms=0), problems)
    ((field, words),) = problems
    assert field == "spec.timeout_ms"
    assert words.startswith("is 0; it must be from 1 to ")
    assert words.endswith("leave it out for the verb's")


def options() -> list[tuple[str, click.Parameter]]:
    return [(f"{path} {param.name}", param) for path, command in commands() for param in command.params]


ZERO_COUNTS = {field.name for field in FIELDS if field.kind == "count" and field.lowest <= 0} | {"expect"}
ZERO_DURATIONS = {"drain_timeout", "late_after"}
HUGE = ("10000000000000000000000000000000", str(2**63), str(2**31))


def numeric(param: click.Parameter) -> bool:
    kind = param.type._kind if isinstance(param.type, OrUnset) else param.type
    return isinstance(kind, click.IntRange | click.FloatRange | Duration | type(click.INT) | type(click.FLOAT))


@pytest.mark.parametrize(("name", "param"), [pair for pair in options() if numeric(pair[1])])
def test_an_option_refuses_what_it_has_no_room_for(name: str, param: click.Parameter):
    context = click.Context(click.Command("x"))

    def taken(text: str) -> bool:
        try:
            param.type.convert(text, param, context)
        except click.BadParameter:
            return False
        return True

    assert param.name is not None
    assert taken("0") == (param.name in ZERO_COUNTS | ZERO_DURATIONS), name
    assert not taken(HUGE[0]), name
    assert not taken("1e30"), name
    if param.name != "priority":
        assert not taken("-1"), name


def test_options_are_found():
    assert sum(numeric(param) for _, param in options()) > 40
    assert cli.name
