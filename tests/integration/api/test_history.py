"""The past by the API: a moment, owners of then, and a timeline in pages."""

from datetime import UTC, datetime, timedelta
from typing import Any

import grpc
import pytest

from cronring.controller.store.connect import connect
from cronring.protos.cronring.v1 import cluster_pb2, history_pb2
from cronring.protos.instants import instant_us, timestamp
from cronring.protos.problems import said
from tests.integration.api.conftest import Filled, Scene
from tests.integration.api.test_who_sees import Caller

MOMENT = "cronring.v1.History/GetMoment"
TIMELINE = "cronring.v1.History/ListTimeline"
HOUR_US = 3_600_000_000


@pytest.fixture
async def storied(filled: Filled, scene: Scene, database_url: str) -> Filled:
    """With a controller that died an hour ago, another that left, and a job that failed twice and recovered."""
    connection = await connect(database_url, "cronring test scene")
    await connection.execute(
        """
        INSERT INTO cron_lives (kind, member, from_at, until_at, departed, address, version, deployments) VALUES
            ('controller', 'c0', now() - interval '3 h', now() - interval '1 h', false, '127.0.0.1:9', '1', '{}'),
            ('controller', 'c9', now() - interval '2 h', now() - interval '1 min', true, '127.0.0.1:9', '1', '{}'),
            ('runner', 'hush_old', now() - interval '3 h', now() - interval '1 h', false, 'hush_host', '1',
             '{hush/hush_m@1}'),
            ('runner', 'xold', now() - interval '3 h', now() - interval '1 h', false, 'xhost', '1',
             '{billing/xm@1,hush/hush_m@1}');
        INSERT INTO cron_executions (job_id, deployment_id, tick, run_at, claimed_at, started_at, ended_at, outcome,
                                     controller_id, runner_id, hard_deadline, error_type, error_message, number)
        SELECT j.id, j.deployment_id, t.at, t.at, t.at + t.late, t.at + t.late, t.at + t.late + interval '10 s',
               t.outcome, 'c9', 'xold', t.at, t.error, 'secret of ' || j.key, t.number
        FROM cron_jobs j, (VALUES
            (now() - interval '61 min', interval '0', 'failed', 'Refused', 11),
            (now() - interval '60 min', interval '30 s', 'failed', 'Refused', 12),
            (now() - interval '58 min', interval '0', 'completed', NULL, 13)) t (at, late, outcome, error, number)
        WHERE j.verb IN ('xc', 'hush_c') ORDER BY t.number;
        """
    )
    await connection.close()
    return filled


def ago(minutes: float) -> Any:
    return timestamp(round((datetime.now(UTC) - timedelta(minutes=minutes)).timestamp() * 1e6))


async def moment(caller: Caller, minutes: float) -> history_pb2.Moment:
    found: history_pb2.Moment = await caller.ask(
        MOMENT, history_pb2.GetMomentRequest(at=ago(minutes)), history_pb2.Moment
    )
    return found


async def test_a_moment_has_those_who_were_there_and_what_ran(storied: Filled) -> None:
    caller = Caller(storied, "root")
    then = await moment(caller, 59.7)
    assert [each.id for each in then.members] == ["c9"]
    assert then.members[0].share == 1.0
    assert then.members[0].departed
    both = await moment(caller, 90)
    assert [each.id for each in both.members] == ["c0", "c9"]
    assert sum(each.primary_slots for each in both.members) == 4_096
    assert sum(each.backup_slots for each in both.members) == 4_096
    assert {each.id for each in both.runners} == {"hush_old", "xold"}
    assert both.ring_digest != then.ring_digest
    ran = await moment(caller, 60 - 35 / 60)
    assert [each.job for each in ran.executions] == ["hush/hush_m.hush_c", "billing/xm.xc"]


async def test_what_was_late_says_why(storied: Filled) -> None:
    then = await moment(Caller(storied, "viewer"), 60 - 10 / 60)
    assert [each.job for each in then.late] == ["billing/xm.xc"]
    late = then.late[0]
    assert late.lateness_ms == pytest.approx(30_000, abs=1)
    assert instant_us(late.claimed_at) > instant_us(then.at), "it still waited then"
    assert late.text.startswith("No runner that has billing/xm")


async def test_who_may_view_less_hears_less(storied: Filled) -> None:
    caller = Caller(storied, "viewer")
    both = await moment(caller, 90)
    assert [(each.id, list(each.deployments)) for each in both.runners] == [("xold", ["billing/xm@1"])]
    ran = await moment(caller, 60 - 35 / 60)
    assert [each.job for each in ran.executions] == ["billing/xm.xc"]
    assert ran.executions[0].error_message == ""


async def test_owners_of_then_follow_from_who_held_a_lease(storied: Filled) -> None:
    caller = Caller(storied, "root")

    async def owners(minutes: float) -> cluster_pb2.GetOwnersResponse:
        request = cluster_pb2.GetOwnersRequest(job="billing/xm.xa", at=ago(minutes))
        found: Any = await caller.ask("cronring.v1.Cluster/GetOwners", request, cluster_pb2.GetOwnersResponse)
        return found  # type: ignore[no-any-return]  # of whatever kind was asked for

    before, after, never = await owners(90), await owners(30), await owners(300)
    assert {before.primary, before.backup} == {"c0", "c9"}
    assert (after.primary, after.backup) == ("c9", "")
    assert (never.primary, never.backup) == ("", "")


@pytest.mark.parametrize("path", [MOMENT, "cronring.v1.Cluster/GetOwners"])
async def test_what_is_to_come_is_refused(storied: Filled, path: str) -> None:
    kinds: dict[str, Any] = {MOMENT: history_pb2.GetMomentRequest}
    request = kinds.get(path, lambda at: cluster_pb2.GetOwnersRequest(job="billing/xm.xa", at=at))(at=ago(-60))
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await Caller(storied, "root").ask(path, request)
    trailing: Any = refused.value.trailing_metadata()
    word = said(trailing)
    assert word is not None
    assert [field for field, _ in word.violations] == ["at"]


async def timeline(caller: Caller, **fields: Any) -> history_pb2.ListTimelineResponse:
    request = history_pb2.ListTimelineRequest(**fields)
    found: history_pb2.ListTimelineResponse = await caller.ask(TIMELINE, request, history_pb2.ListTimelineResponse)
    return found


async def test_a_timeline_tells_each_thing_once(storied: Filled) -> None:
    found = await timeline(Caller(storied, "viewer"))
    kinds = [(each.kind, each.subject) for each in reversed(found.entries)]
    assert kinds[:5] == [
        ("controller_joined", "c0"), ("runner_joined", "xold"), ("controller_joined", "c9"),
        ("failing", "billing/xm.xc"), ("controller_lost", "c0"),
    ]  # fmt: skip
    assert kinds.index(("recovered", "billing/xm.xc")) < kinds.index(("controller_left", "c9"))
    assert ("pause", "billing/xm.xc") in kinds
    texts = [each.text for each in found.entries]
    assert "xann paused billing/xm.xc: xwhy" in texts
    assert "billing/xm.xc completed again, after 2 runs without success." in texts
    assert not [each for each in found.entries if "hush" in each.text or each.error_message]


async def test_what_a_verb_said_is_for_those_who_may_see_outputs(storied: Filled) -> None:
    for name, said_of in (("viewer", ""), ("outputs", "secret of billing/xm.xc")):
        found = await timeline(Caller(storied, name))
        assert [each.error_message for each in found.entries if each.kind == "failing"] == [said_of]


async def test_a_timeline_has_bounds(storied: Filled) -> None:
    caller = Caller(storied, "root")
    found = await timeline(caller, since=ago(59.5), until=ago(30))
    assert {each.kind for each in found.entries} <= {"recovered", "failing", "controller_lost", "runner_lost"}
    for wrong in ({"since": ago(1), "until": ago(2)}, {"since": ago(60 * 24 * 367)}):
        code, _ = await caller.refused(TIMELINE, history_pb2.ListTimelineRequest(**wrong))
        assert code is grpc.StatusCode.INVALID_ARGUMENT


BULK = """
INSERT INTO cron_actions (at, job_id, action, actor, note)
SELECT now() - interval '5 min', id, 'skip_next', 'xbulk', 'xmany' FROM cron_jobs WHERE namespace = ANY($1) ORDER BY id
"""


async def test_what_a_call_did_to_many_is_one_entry_of_those_that_one_may_see(
    storied: Filled, database_url: str
) -> None:
    connection = await connect(database_url, "cronring test scene")
    await connection.execute(BULK, ["billing", "hush"])
    keys = await connection.fetch(
        "SELECT key FROM cron_jobs WHERE namespace = ANY($1) ORDER BY id", ["billing", "hush"]
    )
    await connection.close()
    jobs = [key for (key,) in keys]
    own = [key for key in jobs if key.startswith("billing/")]
    assert len(jobs) > len(own) == 3
    for name, seen in (("root", jobs), ("viewer", own)):
        found = await timeline(Caller(storied, name), since=ago(6), until=ago(4))
        (entry,) = [each for each in found.entries if each.kind == "skip_next"]
        rest = f" and {len(seen) - 3} more" if len(seen) > 3 else ""
        assert entry.text == f"xbulk skipped the next tick of {', '.join(seen[:3])}{rest}: xmany"
