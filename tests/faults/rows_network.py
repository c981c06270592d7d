"""Networks that fail: each controller, each runner and PostgreSQL on a host of its own, and a switch between them."""

import time
from typing import Final

from tests.faults.network import CONTROLLERS, HANDOVER_S, RUNNERS, Network, needs
from tests.faults.row import row
from tests.faults.stage import RECOVERY_S, Stage
from tests.support.hosted import DATABASE
from tests.support.hosts import Weather

PROMISE: Final = "no duplicate, no overlap; both sides converge within 10 s of healing"
EVERYBODY: Final = (*CONTROLLERS, *RUNNERS, DATABASE)


@row(
    "partition-controllers", fault="network partition between controllers: silent, and a link that is down",
    promise=PROMISE, short_s=14, long_s=150, needs=needs,
)  # fmt: skip
def partition_controllers(stage: Stage) -> None:
    """While PostgreSQL is in reach of both sides, nothing is even late; one without a link is like a dead one."""
    network = Network(stage, 31)
    network.start()
    deadline = time.monotonic() + stage.seconds
    while time.monotonic() < deadline:
        alone = network.draw.choice(CONTROLLERS)
        network.cut(alone, [each for each in CONTROLLERS if each != alone])
        stage.pass_time(6 + network.draw.random())
        network.heal()
        alone = network.draw.choice(CONTROLLERS)
        began = network.link_down(alone)
        stage.pass_time(9 + network.draw.random())
        network.excuse(began, began + HANDOVER_S, "what it had claimed is adopted")
        healed = network.heal([alone])
        network.excuse(healed, healed + RECOVERY_S, "its link came back")
    network.note_dropped()


@row(
    "partition-postgres", fault="network partition between one controller, or all of them, and PostgreSQL",
    promise=PROMISE, short_s=18, long_s=150, needs=needs,
)  # fmt: skip
def partition_postgres(stage: Stage) -> None:
    """One that is cut off hands its slots over; what runners report to it meanwhile must not stay with it."""
    network = Network(stage, 32)
    network.start()
    deadline = time.monotonic() + stage.seconds
    while time.monotonic() < deadline:
        began = network.cut(network.draw.choice(CONTROLLERS), DATABASE)
        stage.pass_time(11 + network.draw.random())
        network.excuse(began, began + HANDOVER_S, "what it had claimed is adopted")
        network.heal()
        began = network.cut(CONTROLLERS, DATABASE)
        stage.pass_time(6 + network.draw.random())
        network.excuse(began, network.heal() + RECOVERY_S, "PostgreSQL was out of reach")
    network.note_dropped()


@row(
    "loss-30", fault="30 % of all frames are lost, between all hosts", promise=PROMISE, short_s=12, long_s=120,
    needs=needs,
)  # fmt: skip
def loss_30(stage: Stage) -> None:
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
    """Slow gossip makes no tick late. A database 200 ms away does, and nothing more than that."""
    network = Network(stage, 34)
    network.start()
    before = network.ring_changes()
    network.worsen(CONTROLLERS, CONTROLLERS, Weather(delay_ms=500), "500 ms of delay")
    stage.pass_time(stage.seconds * 0.6)
    after = network.ring_changes()
    stage.measured["ring changes at 500 ms:"] = str(max(after[each] - before[each] for each in after))
    network.heal()
    began = network.worsen(CONTROLLERS, [DATABASE], Weather(delay_ms=100), "100 ms to PostgreSQL")
    stage.pass_time(stage.seconds * 0.4)
    network.excuse(began, network.heal() + RECOVERY_S, "PostgreSQL was 200 ms away")


@row(
    "flapping", fault="a controller's link that is down and up each second", short_s=12, long_s=120, needs=needs,
    promise=f"{PROMISE}; the ring does not churn",
)  # fmt: skip
def flapping(stage: Stage) -> None:
    network = Network(stage, 35)
    network.start()
    before, began = network.ring_changes(), time.time()
    deadline = time.monotonic() + stage.seconds
    while time.monotonic() < deadline:
        network.link_down("c2")
        stage.pass_time(1.0)
        network.hosts.link_up("c2")
        stage.pass_time(1.0)
    network.excuse(began, network.heal(["c2"]) + RECOVERY_S, "a link flapped")
    after = network.ring_changes()
    stage.measured["ring changes:"] = str({each: after[each] - before[each] for each in after})
