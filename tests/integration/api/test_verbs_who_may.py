"""What verbs may do to which jobs, by the grants of their runners. The table is written by hand."""

from typing import Any, Final, NamedTuple

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from cronring.controller.api.job_orders import JobOrders
from cronring.controller.api.job_specs import Defaults
from cronring.controller.api.policy import OF_VERBS
from cronring.controller.api.verb_calls import NUMBER_MAX, VerbCallsService
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.ports.caller import Call, call_in_hand, calling
from cronring.controller.ports.tokens import NewRunnerGrant
from cronring.controller.store.stores import postgres_stores
from cronring.controller.store.tokens import PostgresTokens
from cronring.protos.cronring.v1 import jobs_pb2 as jobs
from cronring.protos.runner.v1 import runner_pb2 as wire
from cronring.schema.identity import LOCAL, NOBODY, Kind, Principal
from cronring.schema.spiffe import runner_name
from tests.integration.api.conftest import Scene
from tests.support.boxes import BOX
from tests.support.secured import CLUSTER

SPEC: Final = jobs.JobSpec(schedule="every 1h", timeout_ms=1_000)
KEY: Final = "billing/xm.xa:made"
GATEWAY: Final = "/cronring.runner.v1.RunnerGateway/Connect"


def made(namespace: str = "", module: str = "xm", verb: str = "xa") -> jobs.CreateJobRequest:
    return jobs.CreateJobRequest(namespace=namespace, module=module, verb=verb, name="made", spec=SPEC)


# In this order, by each caller: what they ask for, and what each hears ("": it is done).
#                               whole   narrow  others  revoked local   nobody
TABLE: Final = (
    ({"create": made()},        "",     "",     "FORB", "FORB", "",     "FORB"),
    ({"create": made("billing")}, "",   "",     "FORB", "FORB", "",     "FORB"),
    ({"create": made("hush", "hush_m", "hush_a")}, *["FORB"] * 6),
    ({"create": made("default")}, *["FORB"] * 6),
    ({"update": jobs.UpdateJobRequest(key=KEY, spec=SPEC, update_mask=FieldMask(paths=["schedule"]))},
                                "",     "",     "FORB", "FORB", "",     "NOT_"),
    ({"get": jobs.GetJobRequest(key=KEY)}, "", "", "FORB", "FORB", "",  "NOT_"),
    ({"get": jobs.GetJobRequest(key="billing/xm.xb")}, "", "", "FORB", "FORB", "", "NOT_"),
    ({"get": jobs.GetJobRequest(key="hush/hush_m.hush_a")}, *["FORB"] * 6),
    ({"get": jobs.GetJobRequest(key="default/other.a")}, *["FORB"] * 6),
    # Without a namespace it is in that of the job that runs.
    ({"get": jobs.GetJobRequest(key="xm.xb")}, "", "", "FORB", "FORB", "", "NOT_"),
    ({"get": jobs.GetJobRequest(key="other.a")}, "NOT_", "FORB", "FORB", "FORB", "NOT_", "NOT_"),
    ({"trigger": jobs.TriggerJobRequest(key=KEY)}, "", "", "FORB", "FORB", "", "NOT_"),
    ({"trigger": jobs.TriggerJobRequest(key="hush/hush_m.hush_a")}, *["FORB"] * 6),
    ({"pause": jobs.PauseJobRequest(key=KEY)}, "", "", "FORB", "FORB", "", "NOT_"),
    ({"pause": jobs.PauseJobRequest(key="hush/hush_m.hush_a")}, *["FORB"] * 6),
    ({"resume": jobs.ResumeJobRequest(key=KEY)}, "", "", "FORB", "FORB", "", "NOT_"),
    ({"resume": jobs.ResumeJobRequest(key="billing/xm.none")}, "NOT_", "NOT_", "FORB", "FORB", "NOT_", "NOT_"),
    ({"resume": jobs.ResumeJobRequest(key="")}, "NOT_", "FORB", "FORB", "FORB", "NOT_", "NOT_"),
    ({"delete": jobs.DeleteJobRequest(key="billing/xm.xa")}, "CONF", "CONF", "FORB", "FORB", "CONF", "NOT_"),
    ({"delete": jobs.DeleteJobRequest(key=KEY)}, "", "", "FORB", "FORB", "", "NOT_"),
    ({"delete": jobs.DeleteJobRequest(key="hush/hush_m.hush_a")}, *["FORB"] * 6),
    ({}, *["INVA"] * 6),
)  # fmt: skip
CALLERS: Final = ("whole", "narrow", "others", "revoked", "local", "nobody")


class Log:
    def exception(self, event: str, error: BaseException) -> None:
        raise AssertionError(event) from error


class Desk(NamedTuple):
    scene: Scene
    service: VerbCallsService
    callers: dict[str, Principal]
    refused: list[tuple[str, Call, str]]

    async def ask(self, who: str, number: int, execution_id: int = 0, **request: Any) -> wire.VerbAnswer:
        """By the execution of billing that runs, on its own runner."""
        call = wire.VerbCall(execution_id=execution_id or self.scene.billing[1], number=number, **request)
        with calling(self.callers[who], GATEWAY, "ipv4:127.0.0.1:7"):
            return await self.service.answer("xr", call)


@pytest.fixture
async def desk(scene: Scene) -> Desk:
    stores, tokens = postgres_stores(scene.database, ClusterSettings()), PostgresTokens(scene.database)
    grants = {"whole": (), "narrow": ("xm", "xn"), "others": ("xn",), "revoked": ()}
    for name, modules in grants.items():
        await tokens.create_runner_grant(NewRunnerGrant(name, "billing", modules, True, None, None, "test", None))
    await tokens.revoke_runner_grant((await tokens.get_runner_grant("revoked")).grant_id, "test")
    known = {name: Principal(Kind.RUNNER, runner_name(CLUSTER, "billing", name).uri) for name in grants}
    refused: list[tuple[str, Call, str]] = []

    def note(what: str, count: int = 0, *, why: str = "") -> None:  # as OnRefusal has it
        refused.append((what, call_in_hand(), why))

    defaults = Defaults(300_000, "off")
    orders = JobOrders(stores.control, stores.reads, stores.templates, defaults, lambda _: None, BOX)
    service = VerbCallsService(
        stores.verb_calls, orders, stores.control, stores.reads, lambda _: None, tokens, note, Log()
    )
    return Desk(scene, service, {**known, "local": LOCAL, "nobody": NOBODY}, refused)


async def test_who_may_what(desk: Desk) -> None:
    number = 0
    for column, who in enumerate(CALLERS):
        for line in TABLE:
            request: Any = line[0]
            number += 1
            answer = await desk.ask(who, number, **request)
            heard = answer.refusal.reason if answer.HasField("refusal") else ""
            assert heard[:4] == line[column + 1], (who, request, answer)
            assert (answer.execution_id, answer.number) == (desk.scene.billing[1], number)


def test_the_table_has_all_that_verbs_may_ask_for() -> None:
    requests: list[Any] = [line[0] for line in TABLE]
    asked = {name for request in requests for name in request}
    assert asked == {field.name for field in wire.VerbCall.DESCRIPTOR.oneofs_by_name["request"].fields}
    assert len(OF_VERBS) == len(asked)


async def test_what_is_refused_says_whose_grant_it_is_and_is_on_record(desk: Desk) -> None:
    answer = await desk.ask("others", 1, pause=jobs.PauseJobRequest(key="billing/xm.xb"))
    assert answer.refusal.problem.startswith("the runner grant 'others' is for modules xn of namespace 'billing', and")
    answer = await desk.ask("whole", 2, pause=jobs.PauseJobRequest(key="hush/hush_m.hush_a"))
    assert "billing/xm.xb may change jobs of its own namespace, 'billing'" in answer.refusal.problem
    for (what, call, why), who in zip(desk.refused, ("others", "whole"), strict=True):
        assert (what, call.principal, call.method) == ("forbidden", desk.callers[who], "/cronring.v1.Jobs/PauseJob")
        assert call.origin == "ipv4:127.0.0.1:7"
        assert why


async def test_what_is_done_is_on_record_as_the_runner_s_with_the_execution_as_its_remark(desk: Desk) -> None:
    request = made()
    request.requested_by, request.note = "somebody else", "signed up"
    await desk.ask("whole", 1, create=request)
    (change,) = [row for row in await desk.scene.world.scene.changes() if row.subject == f"job {KEY}"]
    assert change.principal == str(desk.callers["whole"])
    assert change.method == "/cronring.v1.Jobs/CreateJob"
    assert change.remark == f"for execution {desk.scene.billing[1]} of billing/xm.xb: signed up"
    action = (await desk.scene.world.scene.actions())[-1]
    assert (action.actor, action.note) == (str(desk.callers["whole"]), "signed up")


async def test_other_executions_than_its_own_give_a_runner_no_say(desk: Desk) -> None:
    for execution_id in (desk.scene.billing[0], desk.scene.hush[1], 1 << 40):
        answer = await desk.ask("whole", 1, execution_id, create=made())
        assert (answer.refusal.reason, answer.refusal.again) == ("CONFLICT", False)
        assert "has ended, or was taken for lost" in answer.refusal.problem


async def test_an_answer_is_the_first_one_s_whatever_has_happened_since(desk: Desk) -> None:
    delete = jobs.DeleteJobRequest(key=KEY)
    assert (await desk.ask("whole", 1, create=made())).key == KEY
    assert (await desk.ask("whole", 2, delete=delete)).key == KEY
    assert (await desk.ask("whole", 2, delete=delete)).key == KEY, "it is gone by this very call"
    assert (await desk.ask("whole", 1, create=made())).key == KEY
    assert (await desk.ask("whole", 3, get=jobs.GetJobRequest(key=KEY))).refusal.reason == "NOT_FOUND"
    assert (await desk.ask("whole", 3, delete=delete)).refusal.reason == "NOT_FOUND"


@pytest.mark.parametrize(
    ("number", "request_", "words"),
    [
        (0, {"create": made()}, "number: is 0"),
        (NUMBER_MAX + 1, {"create": made()}, "a run makes 10000 calls at most"),
        (1, {"delete": jobs.DeleteJobRequest(key="billing/xm.xa", note="x" * 40_000)}, "at most 32768 are allowed"),
        (1, {"create": made(module="x m")}, "module"),
    ],
)
async def test_bounds(desk: Desk, number: int, request_: dict[str, Any], words: str) -> None:
    answer = await desk.ask("whole", number, **request_)
    assert answer.refusal.reason == "INVALID"
    assert words in answer.refusal.problem
