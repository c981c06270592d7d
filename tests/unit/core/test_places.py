"""What a controller does with places: due ticks wait for them in their rows, and come in by rank."""

from typing import Any

from cronring.controller.core.model import Activation, ClaimResult, Job, RunnerInfo
from cronring.controller.core.node import effects, events
from cronring.controller.core.node.window import Stage
from cronring.schema.execution import Trigger
from cronring.schema.lanes import Grant, LaneDemand, LaneKind
from tests.unit.core.told import S_US, T, Told, job

DUE = T + 10 * S_US


def _runner(runner_id: str = "r1", *sync_verbs: str, places: bool = True) -> RunnerInfo:
    hosted = (("d", frozenset(sync_verbs)),) if places else None
    return RunnerInfo(runner_id, "host", 1, "1", ("d",), hosted)


class Placed(Told):
    """Runner r1 grants places, `granted` of them so far."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.granted: dict[tuple[str, LaneKind], int] = {}

    def ready_with_places(self, *jobs: Job, places: int = 0) -> None:
        self.ready(*jobs)
        self.tell(events.RunnerLeft("r1"))
        self.tell(events.RunnerJoined(_runner()))
        self.grant(places)

    def grant(
        self, count: int = 0, *, runner_id: str = "r1", kind: LaneKind = LaneKind.ASYNC, epoch: int = 1,
        short: bool = False, keep: int = 0,
    ) -> None:  # fmt: skip
        total = self.granted[runner_id, kind] = self.granted.get((runner_id, kind), 0) + count
        self.tell(events.PlacesGranted(runner_id, [Grant("d", kind, epoch, total, short, keep)]))

    def demand(self) -> LaneDemand:
        """The latest."""
        return self.take(effects.SendDemands)[-1].demands[-1]

    def claimed_jobs(self) -> list[int]:
        return [request.job_id for effect in self.take(effects.Claim) for request in effect.requests]

    def due(self) -> None:
        self.wait_renewing(10_000)


def _jobs(count: int, **changes: Any) -> list[Job]:
    return [job(number, **changes) for number in range(1, count + 1)]


def test_with_places_for_all_the_claim_goes_out_at_once_and_says_which_places_it_took() -> None:
    told = Placed()
    told.ready_with_places(*_jobs(3), places=5)
    told.due()
    assert not told.take(effects.SendDemands)
    told.claimed()
    dispatch = told.one(effects.Dispatch)
    assert (len(dispatch.executions), dispatch.epochs) == (3, [1, 1, 1])


def test_what_has_no_place_is_not_claimed_but_demanded_and_comes_in_when_there_is_one() -> None:
    told = Placed(claims_in_flight=5)
    told.ready_with_places(*_jobs(5), places=2)
    told.due()
    assert len(told.one(effects.Claim).requests) == 2
    assert told.node.stats().waiting_for_place == 3
    demand = told.demand()
    assert (demand.deployment, demand.kind) == ("d", LaneKind.ASYNC)
    assert (demand.wanted, demand.standby, demand.rank_us) == (3, 0, DUE)
    told.grant(1)
    assert len(told.claimed_jobs()) == 1
    told.grant(5)
    assert len(told.claimed_jobs()) == 2
    assert told.node.stats().waiting_for_place == 0
    told.wait(60)
    assert told.demand().wanted == 0


def test_the_lane_is_that_of_the_verb() -> None:
    told = Placed(claims_in_flight=5)
    limited = '{"memory_limit":"100MiB"}'
    told.ready(job(1, verb="sync"), job(2, verb="async"), job(3, verb="async", policy=limited))
    told.tell(events.RunnerLeft("r1"))
    told.tell(events.RunnerJoined(_runner("r1", "sync")))
    told.due()
    assert not told.take(effects.Claim)
    told.wait(60)
    demands = {demand.kind: demand.wanted for effect in told.take(effects.SendDemands) for demand in effect.demands}
    assert demands == dict.fromkeys(LaneKind, 1)
    for kind, job_id in ((LaneKind.QUOTA, 3), (LaneKind.SYNC, 1), (LaneKind.ASYNC, 2)):
        told.grant(1, kind=kind)
        assert told.claimed_jobs() == [job_id]


def test_a_claim_that_is_not_won_leaves_its_place_to_the_next() -> None:
    told = Placed()
    told.ready_with_places(*_jobs(2), places=1)
    told.due()
    claim = told.one(effects.Claim)
    lost = ClaimResult(1, False, True, None, told.database_us, True, DUE, DUE, 1)
    told.tell(events.Claimed(claim.request_id, told.database_us, [lost._replace(job_id=claim.requests[0].job_id)]))
    assert told.claimed_jobs() == [3 - claim.requests[0].job_id]


def test_the_most_urgent_comes_in_first() -> None:
    told = Placed()
    urgent = job(2, policy='{"priority":5}')
    told.ready_with_places(job(1), urgent, job(3))
    told.due()
    assert told.demand().rank_us == DUE - 5 * S_US
    told.grant(1)
    assert told.claimed_jobs() == [2]


def test_others_wait_so_idle_places_go_back_but_for_what_may_be_kept() -> None:
    told = Placed()
    told.ready_with_places(*_jobs(1), places=6)
    told.grant(0, short=True, keep=2)
    demand = told.demand()
    assert (demand.returned, demand.wanted, demand.seen) == (4, 0, 6)
    told.due()
    assert len(told.claimed_jobs()) == 1


def test_a_new_epoch_voids_what_was_granted_before() -> None:
    told = Placed()
    told.ready_with_places(*_jobs(2), places=6)
    told.granted.clear()
    told.grant(0, epoch=9)
    told.due()
    assert not told.take(effects.Claim)
    assert (told.demand().epoch, told.node.stats().waiting_for_place) == (9, 2)


def test_what_was_under_way_when_its_place_was_taken_back_takes_none() -> None:
    told = Placed()
    told.ready_with_places(*_jobs(1), places=1)
    told.due()
    told.granted.clear()
    told.grant(1, epoch=9)
    told.claimed()
    assert told.one(effects.Dispatch).epochs == [0]


def test_a_runner_that_grants_none_takes_whatever_comes() -> None:
    told = Placed()
    told.ready_with_places(*_jobs(5), places=0)
    told.due()
    assert not told.take(effects.Claim)
    told.tell(events.RunnerJoined(_runner("old", places=False)))
    assert len(told.claimed_jobs()) == 5


def test_when_its_last_runner_goes_a_tick_waits_the_grace_from_then_on() -> None:
    told = Placed(runner_grace_ms=3_000)
    told.ready_with_places(*_jobs(1, schedule="0 0 * * *"))
    told.due()
    told.wait_renewing(20_000)
    told.tell(events.RunnerLeft("r1"))
    told.wait_renewing(2_800)
    assert not told.take(effects.SkipTicks)
    told.wait_renewing(400)
    assert len(told.take(effects.SkipTicks)) == 1


def test_who_cannot_claim_gives_everything_back_and_says_so() -> None:
    told = Placed()
    told.ready_with_places(*_jobs(1), places=4)
    told.wait(6_000)  # nobody renews its lease
    demand = told.demand()
    assert (demand.closed, demand.returned) == (True, 4)
    told.wait_renewing(3_000)
    assert not told.demand().closed


def test_a_manual_run_waits_for_a_place_and_comes_in_by_its_rank() -> None:
    told = Placed()
    by_hand = job(7, schedule="manual", next_tick=None, next_run_at=None)
    told.ready_with_places(job(1))
    told.due()
    activation = Activation(5, by_hand, told.database_us, None, 1, Trigger.MANUAL, told.database_us, "", True)
    told.tell(events.ActivationsCreated([activation]))
    told.wait(60)
    assert told.demand().wanted == 2
    told.grant(2)
    assert told.claimed_jobs() == [1]
    assert [request.job_id for request in told.one(effects.Activate).requests] == [7]


def test_stages_of_what_waits() -> None:
    told = Placed()
    told.ready_with_places(job(1))
    told.due()
    entry = told.node._parts.window.entries[1]
    assert entry.stage is Stage.AWAITS_PLACE
    told.tell(events.JobsNotified())
    told.wait(100)
    told.fetched(job(1))
    assert entry.stage is Stage.AWAITS_PLACE
    told.tell(events.JobsNotified())
    told.wait(100)
    told.fetched()  # it is gone
    told.grant(1)
    assert not told.take(effects.Claim)
    told.wait(60)
    assert told.node.stats().waiting_for_place == 0
    assert told.demand().wanted == 0


def _late_lines(told: Placed) -> list[object]:
    return [line.values["lateness_ms"] for line in told.take(effects.LogLine) if line.event == "waiting_for_place"]


def test_nobody_is_told_of_a_full_runner_who_has_not_said_yet_what_it_has() -> None:
    """After an outage all that is due is late, and the runners, idle, are just about to grant their places."""
    told = Placed()
    told.ready(*_jobs(3))
    told.tell(events.RunnerLeft("r1"))
    told.wait_renewing(13_000)
    told.tell(events.RunnerJoined(_runner()))
    told.wait_renewing(200)
    assert told.node.stats().waiting_for_place == 3
    assert _late_lines(told) == []
    told.grant(3)
    told.wait_renewing(2_000)
    assert _late_lines(told) == []


def test_nor_when_postgresql_was_away_and_comes_back() -> None:
    told = Placed(claims_in_flight=5)
    told.ready_with_places(*_jobs(3))
    told.due()
    told.wait(1_000)
    for renewal in told.take(effects.RenewLease):
        told.fail(renewal)
    told.wait(3_000)
    told.take(effects.LogLine)
    told.wait_renewing(300)
    assert told.node.stats().waiting_for_place == 3
    assert _late_lines(told) == []
    told.wait_renewing(1_500)
    told.grant(short=True)
    told.wait_renewing(200)
    assert len(_late_lines(told)) == 1, "by now they are full"
