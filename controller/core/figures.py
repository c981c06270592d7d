"""Counters and histograms of a job's executions, as its row keeps them, and what is told from them.

A histogram's bucket b holds lengths of time from 2^(b/4) to 2^((b+1)/4) microseconds (0: all below as well): from a
microsecond to a year there are 180. A quantile is told as the geometric middle of the bucket it lies in, so it is off
by a factor of 2^(1/8) at most: 9.1 %. `cron_bucket` in sql/migrations counts into them.
"""

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

from cronring.schema.execution import Outcome

BUCKETS_PER_OCTAVE: Final = 4
OUTCOMES: Final = tuple(outcome.value for outcome in Outcome)  # in the order of cron_jobs.outcomes


def quantile_us(histogram: Mapping[int, int], share: float) -> float | None:
    """The duration, in microseconds, that `share` (0 to 1) of what was counted stays below. None: nothing counted."""
    rank = math.ceil(sum(histogram.values()) * share)
    passed = 0
    for bucket in sorted(histogram):
        passed += histogram[bucket]
        if passed >= max(rank, 1):
            return float(2 ** ((bucket + 0.5) / BUCKETS_PER_OCTAVE))
    return None


class Spread(NamedTuple):
    """How long something took, in microseconds."""

    average_us: float
    p50_us: float
    p95_us: float
    p99_us: float


def spread(total_us: int, histogram: Mapping[int, int]) -> Spread | None:
    """None: nothing was counted."""
    p50, p95, p99 = (quantile_us(histogram, share) for share in (0.5, 0.95, 0.99))
    if p50 is None or p95 is None or p99 is None:
        return None
    return Spread(total_us / sum(histogram.values()), p50, p95, p99)


class Figures(NamedTuple):
    """Totals of all time. `executions`: how many have begun. `outcomes`: how those that ended did so."""

    executions: int
    running: int
    outcomes: dict[str, int]
    duration_us: int
    lateness_us: int

    @property
    def ended(self) -> int:
        return sum(self.outcomes.values())

    @property
    def successes(self) -> int:
        return self.outcomes["completed"]

    @property
    def success_rate(self) -> float | None:
        """None: nothing has ended."""
        return self.successes / self.ended if self.ended else None
