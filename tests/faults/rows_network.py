"""Networks that fail: each controller, each runner and PostgreSQL on a host of its own, and a switch between them."""

import time
from pathlib import Path
from typing import Final

from tests.faults.bounds import RECOVERY_S
from tests.faults.network import CONTROLLERS, HANDOVER_S, RUNNERS, TAKE_OVER_S, Network, needs
from tests.faults.row import row
from tests.faults.rows_runners import by_pid, ends
from tests.faults.stage import Stage
from tests.support.hosted import DATABASE
from tests.support.hosts import Weather
from tests.support.judge import JournalRun

PROMISE: Final = "no duplicate, no overlap; both sides converge within 10 s of healing"
EVERYBODY: Final = (*CONTROLLERS, *RUNNERS, DATABASE)
UNSEEN_MODULE: Final = Path(__file__).parent / "modules" / "unseen.py"
FINISHING: Final = ("unseen_finishing_a", "unseen_finishing_b")
UNSEEN: Final = ("unseen_stopped_a", "unseen_stopped_b", *FINISHING)
JUST_BEGUN_S: Final = 2.0  # so that they would go on for longer than a fence
FENCE_S: Final = 8.0  # without contact for so long, a runner stops what may not run unseen,
STOPPING_S: Final = 0.75  # and has it stopped before anybody may declare it lost
LOST_S: Final = 10.5  # by then they have
CHANGES_A_MINUTE: Final = 4  # of a ring on which somebody flaps: a suspect keeps its slots


@row(
    "partition-controllers", fault="network partition between controllers: silent, and a link that is down",
    promise=PROMISE, short_s=14, long_s=150, needs=needs,
)  # fmt: skip
def partition_controllers(stage: Stage) -> None:
    """While PostgreSQL is in reach of both sides, nothing is even late; one without a link is like a dead one."""
    network = Network(stage, 31)
    for _ in network.rounds():
        alone = network.draw.choice(CONTROLLERS)
        network.cut(alone, [each for each in CONTROLLERS if each != alone])
        network.pass_time(6)
        network.heal()
        alone = network.draw.choice(CONTROLLERS)
        began = network.link_down(alone)
        network.pass_time(9)
        network.excuse(began, began + HANDOVER_S, "what it had claimed is adopted")
        healed = network.heal([alone])
        network.excuse(healed, healed + RECOVERY_S, "its link came back")


@row(
    "partition-postgres", fault="network partition between one controller, or all of them, and PostgreSQL",
    promise=PROMISE, short_s=18, long_s=150, needs=needs,
)  # fmt: skip
def partition_postgres(stage: Stage) -> None:
    """One that is cut off hands its slots over; what runners report to it meanwhile must not stay with it."""
    network = Network(stage, 32)
    for _ in network.rounds():
        began = network.cut(network.draw.choice(CONTROLLERS), DATABASE)
        network.pass_time(11)
        network.excuse(began, began + HANDOVER_S, "what it had claimed is adopted")
        network.heal()
        began = network.cut(CONTROLLERS, DATABASE)
        network.pass_time(6)
        network.excuse(began, network.heal() + RECOVERY_S, "PostgreSQL was out of reach")


@row(
    "partition-runner", fault="network partition between a runner and one controller, and all of them",
    promise=f"{PROMISE}; `on_disconnect` honoured", short_s=14, long_s=150, needs=needs,
)  # fmt: skip
def partition_runner(stage: Stage) -> None:
    """What one controller has claimed for a runner that it can't reach, others take over; who sees none, stops."""
    stage.bounds.outcomes = frozenset({"completed", "lost", "cancelled"})
    stage.bounds.periods_s = {**stage.bounds.periods_s, **dict.fromkeys(UNSEEN, 15)}
    stage.beside = [UNSEEN_MODULE]
    network = Network(stage, 36)
    for _ in network.rounds():
        began = network.cut(network.draw.choice(RUNNERS), network.draw.choice(CONTROLLERS))
        network.pass_time(TAKE_OVER_S + 2)
        network.excuse(began, began + TAKE_OVER_S, "what was claimed for a runner out of reach is taken over")
        network.heal()
        cut_off_a_runner(network)


def cut_off_a_runner(network: Network) -> None:
    """From all controllers, in the middle of runs that must stop and of runs that may finish."""
    stage = network.stage
    runner, runs = wait_for_unseen_runs(network)
    began = network.cut(runner, CONTROLLERS)
    stage.pass_time(FENCE_S + STOPPING_S)
    seen = {run.execution_id: run for run in stage.runs()}
    for run in runs:
        now = seen[run.execution_id]
        last = (now.ended_at or now.seen_at or 0.0) - began
        stopped = now.ended_at is None and last <= FENCE_S + STOPPING_S
        stage.expect(stopped or run.verb in FINISHING, f"{run.verb} ran on for {last:.1f} s without any controller")
        stage.expect(
            now.ended_at is not None or last > FENCE_S or run.verb not in FINISHING,
            f"{run.verb} may finish, and was last seen {last:.1f} s after the cut",
        )
    stage.pass_time(LOST_S - FENCE_S)
    healed = network.heal()
    stage.runner_was_away(began)
    network.excuse(began, healed + RECOVERY_S, "a runner was cut off")
    stage.wait_until("outcomes", lambda: all(each["outcome"] for each in ends(stage, runs)), 10)
    for each in ends(stage, runs):
        wanted = {"completed"} if each["verb"] in FINISHING else {"lost"}
        stage.expect(each["outcome"] in wanted, f"{each['verb']} on a runner that was cut off: {each['outcome']}")


def wait_for_unseen_runs(network: Network) -> tuple[str, list[JournalRun]]:
    """A runner's host, and the runs on it that have just begun: some of each kind."""
    stage, found = network.stage, dict[str, list[JournalRun]]()

    def begun() -> bool:
        runs = [run for verb in UNSEEN for run in stage.going_on(verb) if time.time() - run.started_at < JUST_BEGUN_S]
        for name, runner in zip(RUNNERS, stage.cluster.runners, strict=True):
            own = by_pid(stage, runs, runner.pid)
            if {run.verb in FINISHING for run in own} == {True, False}:
                found[name] = own
        return bool(found)

    stage.wait_until("runs of both kinds on one runner", begun, 45)
    return next(iter(found.items()))


@row(
    "one-way-loss", fault="one-way loss: controller to controller, to PostgreSQL, runner to controller, and back",
    promise=PROMISE, short_s=12, long_s=150, needs=needs,
)  # fmt: skip
def one_way_loss(stage: Stage) -> None:
    """Each of the six ways for a while; short: three at once, drawn."""
    network = Network(stage, 37)
    ways = [("c1", "c2"), ("c2", "c1"), ("c3", DATABASE), (DATABASE, "c3"), ("r1", "c1"), ("c1", "r1")]
    for _ in network.rounds():
        for pair in range(0, len(ways), 2):
            source, target = network.draw.choice(ways[pair : pair + 2])
            began = network.cut(source, target, one_way=True)
            network.excuse(began, began + TAKE_OVER_S, "what was claimed is taken over")
        network.pass_time(TAKE_OVER_S + 2)
        network.heal()


@row(
    "loss-30", fault="30 % of all frames are lost, between all hosts", promise=PROMISE, short_s=12, long_s=120,
    needs=needs,
)  # fmt: skip
def loss_30(stage: Stage) -> None:
    # A runner that reaches no controller for eight seconds, as may be, stops what may not run unseen.
    stage.bounds.outcomes = frozenset({"completed", "lost", "cancelled"})
    network = Network(stage, 33)
    network.start()
    began = network.worsen(EVERYBODY, EVERYBODY, Weather(loss=0.3), "30 % loss")
    stage.pass_time(stage.seconds)
    network.excuse(began, network.heal() + RECOVERY_S, "every third frame was lost")
    network.note_dropped()


@row(
    "delay-500", fault="500 ms of delay each way between controllers; 100 ms each way to PostgreSQL",
    promise=PROMISE, short_s=16, long_s=120, needs=needs,
)  # fmt: skip
def delay_500(stage: Stage) -> None:
    """Slow gossip makes no tick late. A database that is 200 ms away does, by some round trips: no longer than this."""
    stage.bounds.late_s = 2.0
    network = Network(stage, 34)
    network.start()
    before = network.ring_changes()
    network.worsen(CONTROLLERS, CONTROLLERS, Weather(delay_ms=500), "500 ms of delay")
    stage.pass_time(stage.seconds * 0.6)
    after = network.ring_changes()
    changes = max(after[each] - before[each] for each in after)
    stage.expect(changes <= 2, f"{changes} changes of one ring, though all of it live and hear each other")
    stage.measured["ring changes at 500 ms:"] = str(changes)
    network.heal()
    began = time.time()
    network.worsen(CONTROLLERS, [DATABASE], Weather(delay_ms=100), "100 ms to PostgreSQL")
    stage.pass_time(stage.seconds * 0.4)
    network.heal()
    # Its claim, its end and the next place are a round trip each, of a fifth of its period.
    stage.excuse(began, "PostgreSQL is far", "sync")


@row(
    "flapping", fault="a controller's link that is down and up each second", short_s=12, long_s=120, needs=needs,
    promise=f"{PROMISE}; the ring does not churn",
)  # fmt: skip
def flapping(stage: Stage) -> None:
    network = Network(stage, 35)
    network.start()
    before, began = network.ring_changes(), time.time()
    allowed = max(2, round(stage.seconds * CHANGES_A_MINUTE / 60))
    deadline = time.monotonic() + stage.seconds
    while time.monotonic() < deadline:
        network.link_down("c2")
        stage.pass_time(1.0)
        network.hosts.link_up("c2")
        stage.pass_time(1.0)
    network.excuse(began, network.heal(["c2"]) + RECOVERY_S, "a link flapped")
    after = network.ring_changes()
    stage.expect(set(after) == set(CONTROLLERS), f"only {sorted(after)} can be asked")
    changes = max(after[each] - before[each] for each in after)
    stage.expect(changes <= allowed, f"{changes} changes of one ring, {allowed} are allowed")
    stage.measured["ring changes:"] = str(changes)
