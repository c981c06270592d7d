"""PostgreSQL's clock, as a runner knows it: an offset to the monotonic clock, taken from what controllers say."""

from collections import deque

_SAMPLES = 16


class DatabaseClock:
    """`Dispatch.now_us` was true when it was sent, so a sample can only be behind, by the way it took.

    The largest offset of the last few samples is therefore the best (NTP's clock filter, one way).
    """

    def __init__(self) -> None:
        self._samples: deque[int] = deque(maxlen=_SAMPLES)
        self.offset_us = 0

    def sample(self, now_us: int, now_ns: int) -> None:
        """A controller said that it is `now_us`; it arrived at `now_ns`."""
        self._samples.append(now_us - now_ns // 1000)
        self.offset_us = max(self._samples)
