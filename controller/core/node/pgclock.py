"""PostgreSQL's clock, seen through a controller's monotonic one.

Each answer that carries PostgreSQL's time says: at some moment between sending and receiving, it was `database_now`.
So the offset (PostgreSQL's time minus monotonic time) lies in an interval as wide as the round trip. As in NTP's clock
filter (RFC 5905, section 10), the best of the last few samples rules: the one with the least error bound, which is half
its round trip plus what both clocks may have drifted apart since. An interval that cannot be reconciled with the
estimate means that PostgreSQL's clock was stepped (or another server took over): then everything older is forgotten.
"""

from collections import deque
from typing import Final, NamedTuple

SAMPLES_KEPT: Final = 8
STEPS_KEPT: Final = 16
DRIFT_PARTS_PER_MILLION: Final = 500  # NTP's bound on a working oscillator; also on how fast a slewed clock moves


class _Sample(NamedTuple):
    offset_ns: int
    half_round_trip_ns: int
    sent_ns: int

    def error_ns(self, now_ns: int) -> int:
        return self.half_round_trip_ns + (now_ns - self.sent_ns) * DRIFT_PARTS_PER_MILLION // 1_000_000


class Step(NamedTuple):
    """PostgreSQL's clock was set forward (or back) by `by_us`; `noticed_us` is its own time, when that was noticed."""

    noticed_us: int
    by_us: int


class DatabaseClock:
    """The estimate of PostgreSQL's clock. Unknown until the first sample."""

    __slots__ = ("_offset_ns", "_samples", "stepped_ns", "steps")

    def __init__(self) -> None:
        self._samples: deque[_Sample] = deque(maxlen=SAMPLES_KEPT)
        self._offset_ns = 0
        self.steps: deque[Step] = deque(maxlen=STEPS_KEPT)  # the latest ones
        self.stepped_ns: int | None = None  # when the latest step was noticed, on the monotonic clock

    @property
    def known(self) -> bool:
        return bool(self._samples)

    def sample(self, sent_ns: int, received_ns: int, database_now_us: int) -> bool:
        """Take an answer into account. True if PostgreSQL's clock turns out to have been stepped."""
        middle_ns = (sent_ns + received_ns) // 2
        half_ns = (received_ns - sent_ns + 1) // 2
        sample = _Sample(database_now_us * 1_000 - middle_ns, half_ns, sent_ns)
        stepped = False
        if self._samples:
            best = self._best(received_ns)
            # A microsecond more, as PostgreSQL's times are rounded to that.
            slack_ns = best.error_ns(received_ns) + half_ns + 1_000
            stepped = abs(sample.offset_ns - best.offset_ns) > slack_ns
            if stepped:
                self.steps.append(Step(database_now_us, (sample.offset_ns - best.offset_ns) // 1_000))
                self.stepped_ns = received_ns
                self._samples.clear()
        self._samples.append(sample)
        self._offset_ns = self._best(received_ns).offset_ns
        return stepped

    def leap(self, by_us: int) -> None:
        """PostgreSQL's clock moves on by so much right now, as virtual time does. This is no step."""
        self._offset_ns += by_us * 1_000
        if self._samples:
            newest = self._samples[-1]
            self._samples.clear()
            self._samples.append(newest._replace(offset_ns=self._offset_ns))

    # docs/decisions/0044: decisions may use no other wall clock
    def now_us(self, now_ns: int) -> int:
        """PostgreSQL's time at the monotonic `now_ns`. Only meaningful once `known`."""
        return (now_ns + self._offset_ns) // 1_000

    def reaches_at_ns(self, instant_us: int) -> int:
        """The monotonic time at which PostgreSQL's clock reaches `instant_us`."""
        return instant_us * 1_000 - self._offset_ns

    def stepped_forward_since_us(self, instant_us: int) -> int:
        """By how much PostgreSQL's clock has jumped ahead since `instant_us`, in the steps that are kept."""
        return sum(step.by_us for step in self.steps if step.noticed_us > instant_us and step.by_us > 0)

    def error_us(self, now_ns: int) -> int:
        """How wrong the estimate may be, either way."""
        return self._best(now_ns).error_ns(now_ns) // 1_000 if self._samples else 0

    def _best(self, now_ns: int) -> _Sample:
        return min(self._samples, key=lambda sample: sample.error_ns(now_ns))
