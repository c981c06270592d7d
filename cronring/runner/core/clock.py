"""PostgreSQL's clock, as a runner knows it: an offset to the monotonic clock, taken from what controllers say."""

from collections import deque

_SAMPLES = 16
_SLACK_US = 100_000  # controllers estimate PostgreSQL's clock, each a little otherwise; and clocks drift


class DispatchClock:
    """`Dispatch.now_us` was true when it was sent, so a sample is behind by the time that the message was on its way.

    The largest offset of the last few samples is therefore the best one (NTP's clock filter, one way). After
    PostgreSQL's clock was set back, it would be too large: each dispatch then seems to have been on its way for long.
    The order of the stream tells how long that can have been: the controller sent the dispatch after it had received
    the last beat that it acknowledged. An offset above what this allows means that the clock was set back.
    """

    def __init__(self) -> None:
        self._samples: deque[int] = deque(maxlen=_SAMPLES)
        self.offset_us = 0

    # docs/decisions/0033: a one-way filter can't tell a set-back from a delay
    def sample(self, now_us: int, sent_after_ns: int, now_ns: int) -> None:
        """A controller said that it is `now_us`, not before `sent_after_ns`; it arrived at `now_ns`."""
        latest_us = now_us - sent_after_ns // 1000
        if self._samples and self.offset_us > latest_us + _SLACK_US:
            self._samples.clear()
        self._samples.append(now_us - now_ns // 1000)
        self.offset_us = max(self._samples)
