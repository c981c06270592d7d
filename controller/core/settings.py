"""Settings that must be the same on all controllers of a cluster, and the relations between them that invariants need.

Durations carry their unit in the name. The defaults are for a LAN and one PostgreSQL.
"""

from dataclasses import dataclass
from typing import Final

from cronring.schema.duration import DURATION_LIMIT_MS
from cronring.schema.jitter import JitterError, parse_jitter

STOPPING_MS: Final = 500  # how long a fenced runner has to stop its runs, kills included
_DAY_MS: Final = 86_400_000
_CENTURIES_MS: Final = 10_000_000_000_000  # virtual clocks let one window hold everything
# Upper bounds: enough for any working cluster, and small enough for all types here and in the database. Other durations
# may be a day.
_MOST: Final = {
    "timeout_ms": DURATION_LIMIT_MS,
    "claim_batch": 10_000,
    "refetch_interval_ms": _CENTURIES_MS,
    "window_ms": _CENTURIES_MS,
    "claims_in_flight": 64,
    "end_batch": 10_000,
    "ends_in_flight": 64,
    "suspicion_multiplier": 100,
    "indirect_probes": 100,
    "history_days": DURATION_LIMIT_MS // _DAY_MS,
    "history_runs": 1_000_000,
    "audit_log_days": DURATION_LIMIT_MS // _DAY_MS,
}


class SettingsError(ValueError):
    """Settings contradict each other. The message names the fields, their values, and the relation."""


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """Settings of the whole cluster. Raises SettingsError when a relation that an invariant rests on does not hold."""

    backup_delay_ms: int = 500
    refetch_interval_ms: int = 60_000
    window_ms: int = 90_000
    lease_ms: int = 5_000
    lease_renew_ms: int = 1_000
    lease_margin_ms: int = 1_000  # a controller steps down this much before PostgreSQL would
    runner_beat_ms: int = 1_000
    runner_fence_ms: int = 8_000  # a runner without contact stops its runs after this
    runner_lost_after_ms: int = 8_750  # controllers may declare it lost after this
    runner_grace_ms: int = 10_000  # how long a due tick waits for a runner before it is skipped (no_runner)
    timeout_ms: int = 300_000  # soft timeout of a job that states none
    hard_timeout_grace_ms: int = 30_000
    cancel_grace_ms: int = 2_000  # what a cancelled run is given to stop by itself
    default_jitter: str = "off"  # of jobs that state none
    claim_batch: int = 500
    claims_in_flight: int = 2
    end_batch: int = 500
    ends_in_flight: int = 2
    probe_interval_ms: int = 500
    probe_timeout_ms: int = 200
    suspicion_multiplier: int = 4
    indirect_probes: int = 3
    sync_interval_ms: int = 10_000
    history_days: int = 30  # executions are kept so long, or
    history_runs: int = 100  # so many of each job: whichever keeps more
    audit_log_days: int = 400  # a year, and time to look into it
    activation_retry_ms: int = 2_000  # longest pause between tries of an activation (job or runner busy)

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            most = _MOST.get(name, _DAY_MS)
            if not isinstance(value, str) and not 1 <= value <= most:
                unit = " ms" if name.endswith("_ms") else ""
                raise SettingsError(f"{name} is {value}{unit}; it must be from 1 to {most}{unit}")
        try:
            both_ways = parse_jitter(self.default_jitter).both_ways
        except JitterError as error:
            raise SettingsError(f"default_jitter is {self.default_jitter!r}: {error}") from None
        if both_ways:
            raise SettingsError(
                f"default_jitter is {self.default_jitter!r}, and no job starts before its tick that hasn't asked for "
                "it; leave out the sign, or give that jitter to single jobs"
            )
        self._require("lease_renew_ms", "lease_ms", factor=2)
        self._require("lease_margin_ms", "lease_ms", factor=2)
        self._require("refetch_interval_ms", "window_ms")
        # A runner gives one controller 2.5 beats to renew its lease. It needs as much time to ask the next one before
        # its fence.
        self._require("runner_beat_ms", "runner_fence_ms", factor=5)
        if self.runner_fence_ms + STOPPING_MS > self.runner_lost_after_ms:
            raise SettingsError(
                f"runner_fence_ms ({self.runner_fence_ms}) + {STOPPING_MS}, in which a runner stops what runs, "
                f"must not exceed runner_lost_after_ms ({self.runner_lost_after_ms})"
            )
        # A run may reach its runner just before the runner's fence. When the run should end, the runner may stand still
        # for as long again. Until then nobody may start the next run in its place. docs/decisions/0022: a run may
        # outlive its deadline until its fence
        self._require("runner_lost_after_ms", "hard_timeout_grace_ms", factor=2)
        self._require("probe_timeout_ms", "probe_interval_ms")

    def _require(self, smaller: str, larger: str, factor: int = 1) -> None:
        if getattr(self, smaller) * factor >= getattr(self, larger):
            times = f"{factor} x " if factor > 1 else ""
            raise SettingsError(
                f"{times}{smaller} ({getattr(self, smaller)}) must be below {larger} ({getattr(self, larger)})"
            )
