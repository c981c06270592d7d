"""What `cronring drill` asks, refuses and concludes. On real controllers: tests/integration/operations."""

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cronring.cli.drill.doing import DrillSpan
from cronring.cli.drill.findings import Findings, Late, Lateness, spread
from cronring.cli.drill.plan import DrillOrder, DrillPlan, TicksAhead, make_plan, ticks_within
from cronring.cli.drill.target import kill, require_dev
from cronring.cli.drill.words import announced, told, verdict
from cronring.cli.failures import Failure
from cronring.client import convert
from cronring.client.model import Cluster, Execution, Job, Member, Owners, Ring, Runner
from cronring.schema.keys import slot_of
from cronring.trust.names import DEV_PARENT
from tests.unit.cli.conftest import Cronring
from tests.unit.cli.fake_api import FakeApi, execution, job

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
WANTED = DrillOrder("", 15.0, False, False, "ann")
OF_NOTHING = Lateness(0, None, None, None)


def a_job(verb: str = "often", schedule: str = "*/2 * * * * *", in_s: float = 1.0, **fields: Any) -> Job:
    due = convert.timestamp(NOW + timedelta(seconds=in_s))
    return convert.job(job(verb, schedule=schedule, next_tick=due, next_execution=due, timezone="", **fields))


def a_member(name: str, status: str = "alive", pid: int = 1) -> Member:
    return Member(name, f"{name}:1", "", status, 1, 0.5, 2048, 2048, NOW, pid, "1", NOW)


class FakeClient:
    """What a plan asks for."""

    def __init__(
        self, *jobs: Job, members: tuple[Member, ...] = (), deployments: tuple[str, ...] = ("billing-1",)
    ) -> None:
        self._jobs = jobs
        self._members = members or (a_member("c1"), a_member("c2"))
        self._deployments = deployments
        self.jobs = self.cluster = self

    async def list(self, limit: int) -> list[Job]:
        assert limit >= 1_000
        return list(self._jobs)

    async def get(self, key: str = "") -> Any:
        if key:
            return next(each for each in self._jobs if each.key == key)
        runner = Runner("r1", "host", 1, NOW, NOW, self._deployments, True)
        return Cluster("c1", self._members, (runner,), NOW, 0.0, "d")

    async def ring(self) -> Ring:
        return Ring(("c1", "c2"), (0,) * 4096, (1,) * 4096, "d")

    async def owners(self, key: str) -> Owners:
        return Owners(key, slot_of(key), "c1", "c2", None)


async def plan_of(*jobs: Job, wanted: DrillOrder = WANTED, **parts: Any) -> DrillPlan:
    client: Any = FakeClient(*jobs, **parts)
    return await make_plan(client, wanted)


async def refusal_of(*jobs: Job, wanted: DrillOrder = WANTED, **parts: Any) -> str:
    with pytest.raises(Failure) as refused:
        await plan_of(*jobs, wanted=wanted, **parts)
    return refused.value.message


async def test_without_a_job_it_takes_the_one_that_ticks_most_and_says_why() -> None:
    plan = await plan_of(a_job("seldom", "*/5 * * * * *"), a_job("often"), a_job("still", "0 0 1 1 *", 1e6))
    assert plan.job.key == "billing.often"
    assert plan.chosen == "it ticks most often: 7 times meanwhile"
    assert set(plan.ahead) == {TicksAhead("billing.often", 7, "c2"), TicksAhead("billing.seldom", 2, "c2")}
    assert plan.addresses == ("c2:1", "c1:1"), "the primary comes last: it may be dead by then"
    assert "about 9 ticks of 2 jobs (billing.often, billing.seldom), half a second late" in "\n".join(announced(plan))


@pytest.mark.parametrize(("fields", "ticks"), [({}, 7), ({"status": "paused"}, 0), ({"status": "running"}, 7)])
def test_only_ticks_that_others_could_take_over_count(fields: dict[str, Any], ticks: int) -> None:
    assert ticks_within(a_job(**fields), NOW, 15.0) == ticks
    assert ticks_within(a_job(in_s=14.5), NOW, 15.0) == 0, "in the last second its primary may claim again"


async def test_what_would_show_nothing_is_refused_with_what_to_do() -> None:
    often = DrillOrder("billing.often", 15.0, False, False, "ann")
    assert "`cronring jobs resume billing.often`" in await refusal_of(a_job(status="paused"), wanted=often)
    assert "is cancelled" in await refusal_of(a_job(status="cancelled"), wanted=often)
    assert "its next one is at 2026-11-22 12:01:40Z" in await refusal_of(a_job(in_s=100.0), wanted=often)
    assert "the next tick of all is at 2026-11-22 12:01:40Z" in await refusal_of(a_job(in_s=100.0))
    assert "no job has a tick to come" in await refusal_of()
    assert "no living runner hosts billing-1" in await refusal_of(a_job(), deployments=("billing-0",))
    assert "c1 is the only controller alive" in await refusal_of(a_job(), members=(a_member("c1"),))
    dead = (a_member("c1"), a_member("c2", "dead"), a_member("c3", "draining"))
    assert "c1 is the only controller alive" in await refusal_of(a_job(), members=dead)
    busy = (a_member("c1"), a_member("c2", "in_drill"), a_member("c3"))
    assert "c2 is in a drill already" in await refusal_of(a_job(), members=busy)
    forced = DrillOrder("", 15.0, False, True, "ann")
    assert (await plan_of(a_job(), wanted=forced, members=(a_member("c1"),))).others == ()


def found(**changes: Any) -> Findings:
    values: dict[str, Any] = {
        "begun": NOW, "ended": NOW + timedelta(seconds=15), "lasted_ms": 15_000.0, "cut": "",
        "before": OF_NOTHING, "taken_over": Lateness(7, 510.0, 530.0, 530.0), "of_job": OF_NOTHING,
        "itself": OF_NOTHING, "by": {"c2": 7}, "on_time": 0, "late": (), "running": 0, "undecided": (), "ticks": 9,
        "skipped": {},
        "lost": 0, "duplicates": 0, "clean": True, "ring_changed": False,
    }  # fmt: skip
    return Findings(**(values | changes))


@pytest.mark.parametrize(
    ("changes", "held", "words"),
    [
        ({}, True, "HELD: every tick ended in the books once, none began more than 530ms late"),
        ({"taken_over": OF_NOTHING}, False, "NOT SHOWN: no tick was taken over"),
        ({"on_time": 7}, False, "NOT SHOWN: nothing was left lying"),
        ({"on_time": 7, "ring_changed": True}, True, "HELD"),
        ({"on_time": 6}, True, "HELD"),
        ({"lost": 2, "clean": False}, False, "NOT HELD: 2 lost and 0 duplicate ticks"),
        ({"duplicates": 1, "clean": False}, False, "NOT HELD: 0 lost and 1 duplicate ticks"),
        ({"undecided": ("billing.often",)}, False, "NOT HELD: nobody has claimed a tick of billing.often"),
        ({"late": (Late("a.b", NOW, 1_500.0, 510.0),)}, False, "claimed 510ms late, and its runner took the rest"),
        ({"late": (Late("a.b", NOW, 1_500.0, 1_400.0),)}, False, "it was claimed so late"),
    ],
)
async def test_the_verdict(changes: dict[str, Any], held: bool, words: str) -> None:
    plan = await plan_of(a_job())
    assert found(**changes).held is held
    assert words in verdict(plan, found(**changes))
    assert told(plan, found(**changes))[-1] == verdict(plan, found(**changes))


async def test_what_makes_figures_say_less_is_told() -> None:
    lines = told(await plan_of(a_job()), found(cut="it died", ring_changed=True, running=2))
    assert [line for line in lines if line.startswith("note: ")] == [
        "note: it was over early: it died",
        "note: the ring changed meanwhile: some slots have other owners now",
        "note: 2 of these still run or wait at their runner, and count by their claim",
    ]


def run(lateness_ms: float | None) -> Execution:
    shown = execution(5, lateness_ms=lateness_ms) if lateness_ms is not None else execution(5)
    if lateness_ms is None:
        shown.ClearField("started_at")
        shown.ClearField("lateness_ms")
    return convert.execution(shown)


def test_quantiles_are_ranks_and_what_still_runs_counts_by_its_claim() -> None:
    assert spread([run(float(each)) for each in range(1, 101)]) == Lateness(100, 50.0, 99.0, 100.0)
    assert spread([]) == OF_NOTHING
    assert spread([run(None)]) == Lateness(1, 1.0, 1.0, 1.0)
    assert DrillSpan(NOW, NOW + timedelta(seconds=2.5), "").lasted_s == 2.5


SLEEP = "import sys; print('up', flush=True); sys.stdin.read()"


@pytest.fixture
def started() -> Iterator[Any]:
    processes: list[subprocess.Popen[bytes]] = []

    def start(code: str, *arguments: str, **mark: str) -> int:
        process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | mark,
        )
        processes.append(process)
        # Its environment can't be read until its exec is over, which is after Popen has returned.
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        return process.pid

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def test_only_a_child_of_dev_at_that_address_may_be_killed(started: Any) -> None:
    mine = {DEV_PARENT: str(os.getpid())}
    require_dev(a_member("c1", pid=started(SLEEP, "c1:1", **mine)))
    for pid, why in (
        (started(SLEEP, "c1:1"), "no `cronring dev` on this machine has started it"),
        (started(SLEEP, "c1:1", **{DEV_PARENT: "1"}), "no `cronring dev` on this machine has started it"),
        (started(SLEEP, "c2:1", **mine), "does not listen at c1:1"),
        (2**22 + 1, "no process of yours on this machine has its id"),
    ):
        with pytest.raises(Failure, match=why):
            kill(a_member("c1", pid=pid))


def test_consent_is_asked_and_needs_a_terminal(asked: Cronring, api: FakeApi) -> None:
    result = asked("drill", "kill-owner")
    assert result.exit_code == 2
    assert "give it with --yes" in result.stderr
    assert asked("drill", "kill-owner", "--yes", "--for", "61s").exit_code == 2
    assert asked("drill", "kill-owner", "--yes", "--kill", "--force").exit_code == 2
    api.jobs = [job("refresh", status="paused")]
    result = asked("drill", "kill-owner", "--yes", "--job", "billing.refresh")
    assert (result.exit_code, "is paused" in result.stderr) == (1, True)


def test_help_says_what_it_does_and_how_it_ends(asked: Cronring) -> None:
    shown = asked("drill", "kill-owner", "--help").stdout
    assert "--kill" in shown
    assert "Exit codes: 0 it held; 1 a tick was lost" in shown
    assert "kill-owner" in asked("drill", "--help").stdout
