"""The engine's own rules. That leaps change nothing that anybody could see is held by test_leaps.py."""

from collections.abc import Mapping
from typing import Any

from cronring.controller.core.orders.redeploy import deployment_key
from cronring.controller.core.settings import ClusterSettings
from cronring.schema.instant import parse_instant
from cronring.virtual import engine as engines
from cronring.virtual.engine import Engine
from cronring.virtual.inprocess import RunsHere
from cronring.virtual.loading import load_here
from cronring.virtual.outages import parse_outage
from tests.unit.virtual import author

START_US = parse_instant("2026-03-28")
HOUR_US = 3_600_000_000


class Played:
    def __init__(self, hours: int, *outages: str) -> None:
        self.lines: list[tuple[str, str]] = []
        runs, loaded = RunsHere(), load_here(author)
        self.engine = Engine(START_US, ClusterSettings(default_jitter="off"), runs, self._log)
        runs.host(deployment_key(loaded.module, loaded.digest), loaded.verbs)
        self.engine.deploy_all([(loaded.module, loaded.digest)])
        for outage in outages:
            self.engine.schedule_outage(parse_outage(outage))
        self.engine.run_until(START_US + hours * HOUR_US)
        runs.close()

    def _log(self, who: str, _level: str, event: str, _values: Mapping[str, Any]) -> None:
        self.lines.append((who, event))

    @property
    def story(self) -> list[tuple[Any, ...]]:
        """Who ran what when, to the second: statements fall on other milliseconds without leaps."""
        rows = self.engine.store.executions.values()
        return sorted(
            (
                row.job.key,
                row.tick,
                row.attempt,
                str(row.trigger),
                str(row.outcome),
                row.missed,
                row.run_at // 1_000_000,
            )
            for row in rows
        )

    @property
    def skips(self) -> list[tuple[Any, ...]]:
        return sorted((row.job_id, *row.skipped) for row in self.engine.store.skips)


def test_nothing_is_early_and_nothing_is_late_without_a_reason() -> None:
    played = Played(48)
    for row in played.engine.store.executions.values():
        assert row.claimed_at == row.run_at, row


def test_calm_days_cost_no_renewals() -> None:
    played = Played(48)
    renewed = played.engine.store.controllers["controller-1"].lease_expires_at
    assert renewed > played.engine.now_us, "the lease is held at the end"
    assert ("controller-1", "lease_lost") not in played.lines
    assert ("controller-1", "database_clock_stepped") not in played.lines
    assert played.engine.time.now_ns < 60 * engines.SECOND_NS, "of monotonic time, hardly any passed"


def test_parts_tell_of_an_outage() -> None:
    lines = Played(3, "database@2026-03-28T01:20+75m").lines
    told = [event for _, event in lines]
    assert told.index("outage_began") < told.index("lease_lost") < told.index("outage_ended") < told.index("store_up")


def test_outages_of_one_part_may_overlap() -> None:
    played = Played(4, "runners@2026-03-28T00:30+1h", "runners@2026-03-28T01:00+2h")
    assert not played.engine.is_away("runners")
    assert played.engine.runner is not None
    assert played.engine.runner.name == "runner-2", "it came back once, after both"
