"""A year of a cluster: what keeps it alive happens by the hour, not by the second, so that the work is the ticks'.

Real are the nodes and the runners' cores, the rules of the store, the calendar and its policies, as in `World`.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from cronring.controller.core.settings import ClusterSettings
from cronring.runner.core.settings import RunnerSettings
from cronring.schema.instant import parse_instant
from cronring.virtual.clock import SECOND
from tests.simulation.checkers import check_audit, check_converged, check_once, check_results
from tests.simulation.database import Database
from tests.simulation.pace import Pace
from tests.simulation.workload import Workload
from tests.simulation.world import World
from tests.simulation.year_checkers import check_year
from tests.simulation.year_database import WatchedDatabase
from tests.simulation.year_history import YearStore
from tests.simulation.year_operator import Operator
from tests.simulation.year_outages import Outage, plan_outages, schedule_outages
from tests.simulation.year_reasons import RECOVERY_US
from tests.simulation.year_workload import DAY_US, YearWorkload

MINUTE: Final = 60 * SECOND
HOUR: Final = 3_600 * SECOND
HOUR_MS: Final = 3_600_000
DAYS: Final = 366
CALM_DAYS: Final = 5  # at its end: whatever waited for something has had its time
FIRST_START: Final = parse_instant("2027-03-01")
STARTS_DAYS: Final = 360  # of the first day of any year drawn, so that the 29th of February is in each
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def settings_for_a_year() -> ClusterSettings:
    """The relations of the defaults, in hours. What a tick meets (backup, grace of runners) is as it always is."""
    return ClusterSettings(
        refetch_interval_ms=6 * HOUR_MS,
        window_ms=9 * HOUR_MS,
        lease_ms=4 * HOUR_MS,
        lease_renew_ms=HOUR_MS,
        lease_margin_ms=HOUR_MS,
        runner_beat_ms=HOUR_MS,
        runner_fence_ms=6 * HOUR_MS,
        runner_lost_after_ms=7 * HOUR_MS,
        hard_timeout_grace_ms=15 * HOUR_MS,
        timeout_ms=HOUR_MS,
        probe_interval_ms=HOUR_MS,
        probe_timeout_ms=HOUR_MS // 6,
        sync_interval_ms=10 * HOUR_MS,
        activation_retry_ms=HOUR_MS // 12,
    )


class YearWorld(World):
    """`days`: as many of the year, for tests that don't need all of it; there is less in them of everything."""

    pace = Pace(
        drift_ppm=1,
        redial_ns=MINUTE // 2,
        register_again_ns=5 * MINUTE,
        runner=RunnerSettings(
            beat_ns=HOUR,
            fence_ns=6 * HOUR,
            renewal_patience_ns=HOUR * 5 // 2,
            ack_patience_ns=HOUR // 2,
            review_ns=HOUR // 4,
            drain_ns=HOUR // 2,
            forget_peer_ns=12 * HOUR,
        ),
    )

    def __init__(self, seed: int, show: Callable[[str], None] | None = None, days: int = DAYS) -> None:
        self.days = days
        super().__init__(seed, show, orders=False)
        self.notify_loss = self.rng.choice((0.0, 0.0, 0.3))
        self.addresses = tuple(f"host-{number}:7000" for number in range(self.rng.choice((2, 2, 3))))
        self.default_jitter = "auto"
        self.calm_us = CALM_DAYS * DAY_US // 2
        self.runners_usual = self.runners_wanted = self.rng.randint(1, 2)
        self.outages: list[Outage] = []

    @property
    def store(self) -> YearStore:
        store = self.database.store
        assert isinstance(store, YearStore)
        return store

    @property
    def year(self) -> YearWorkload:
        assert isinstance(self.workload, YearWorkload)
        return self.workload

    def _database(self) -> Database:
        self.start_us = FIRST_START + self.rng.randrange(STARTS_DAYS) * DAY_US
        self.end_us = self.start_us + self.days * DAY_US
        return WatchedDatabase(self.clock, self.network, self.fork(), self.start_us, YearStore)

    def _settings(self) -> ClusterSettings:
        return settings_for_a_year()

    def _workload(self) -> Workload:
        return YearWorkload(self.fork(), self.start_us, self.end_us)

    def _time_shown(self) -> str:
        now = EPOCH + timedelta(microseconds=self.database.now_us())
        return f"{now:%Y-%m-%d %H:%M:%S.%f}"

    def at(self, instant_us: int, action: Callable[[], None]) -> None:
        """Of PostgreSQL's clock, which nobody sets in this world."""
        self.clock.call_at((instant_us - self.start_us) * 1_000, action)

    def run(self) -> None:
        """The year, with what goes wrong in it, and some days without."""
        for address in self.addresses:
            self.later(0, 2, partial(self.start_controller, address))
        self.later(0.1, 1, self.deploy)
        self.man_runners()
        calm_from_us = self.end_us - CALM_DAYS * DAY_US
        self.outages = plan_outages(self, calm_from_us)
        schedule_outages(self, self.outages)
        operator = Operator(self, calm_from_us)
        self.at(calm_from_us + DAY_US // 4, operator.resume_all)
        self.clock.run_until((self.end_us - self.start_us) * 1_000)
        check_once(self.store)
        check_results(self)
        check_converged(self)
        check_audit(self.store)
        check_year(self)

    def often(self, times_a_year: int) -> int:
        """How often in the days that there are."""
        return -(-times_a_year * self.days // DAYS)

    def troubled(self, from_us: int, until_us: int) -> bool:
        """Whether anything was away in [from, until], or had just come back."""
        return (
            any(outage.from_us <= until_us and outage.until_us + RECOVERY_US >= from_us for outage in self.outages)
            or from_us < self.start_us + RECOVERY_US
        )

    def man_runners(self) -> None:
        alive = sum(runner.alive and not runner.draining for runner in self.runners)
        for number in range(self.runners_wanted - alive):
            self.later(0.1 + number, 3 + number, self.start_runner)

    def start_runner(self) -> None:
        """Unless there are enough meanwhile."""
        if sum(runner.alive and not runner.draining for runner in self.runners) < self.runners_wanted:
            super().start_runner()

    def roll_out(self) -> None:
        """Runners that host the new version come; those before leave when they are there."""
        if self.deploying:
            self.later(60, 600, self.roll_out)
            return
        self.log("OPERATOR rolls out the next version")
        self.workload.change(self.rng, self.database.now_us())
        old = [runner for runner in self.runners if runner.alive]

        def replace_runners() -> None:
            for _ in range(self.runners_wanted):
                World.start_runner(self)
            for runner in old:
                self.later(2, 5, runner.drain)

        self.deploy(replace_runners)
