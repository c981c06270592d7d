"""What one runner's stream may do before it is closed. Our runners stay far below these limits.

Each kind of message has an allowance. It grows by `per_s` each second, up to `at_most`, and each message takes one.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Final, NamedTuple


class Lie(StrEnum):
    """What is counted, by the name that the metric `cronring_refused_total` has for it."""

    BEAT = "beat_flood"  # beats beyond what their interval and a backlog explain
    EMPTY = "empty_message"  # a message without content
    OUTPUT = "output_unasked"  # of a run that nobody follows
    FOREIGN = "report_foreign"  # of an execution that was claimed for another runner, or under another claim
    DECIDED = "report_decided"  # of one that had ended before, or that never was


class Allowance(NamedTuple):
    per_s: float
    at_most: int


# A runner offers a result to one controller after the other until it is acknowledged. So results that a controller had
# committed when it died come to another one all at once, as decided. Our runners never send foreign ones.
ALLOWED: Final = {
    Lie.BEAT: Allowance(20.0, 400),
    Lie.EMPTY: Allowance(1.0, 100),
    Lie.OUTPUT: Allowance(100.0, 2_000),
    Lie.FOREIGN: Allowance(0.0, 100),
    Lie.DECIDED: Allowance(200.0, 20_000),
}
_WORDS: Final = {
    Lie.BEAT: "beats faster than any runner does",
    Lie.EMPTY: "sends messages with nothing in them",
    Lie.OUTPUT: "sends output that nobody asked for",
    Lie.FOREIGN: "reports ends of executions that are not its own",
    Lie.DECIDED: "reports ends of executions that had ended before, or never were",
}


class Conduct:
    """Of one stream. `now_us` is any monotonic clock in microseconds; `counted` is told of each."""

    def __init__(self, now_us: Callable[[], int], counted: Callable[[str, int], None]) -> None:
        self._now_us = now_us
        self._counted = counted
        self._left: dict[Lie, tuple[int, float]] = {}  # when it was last taken from, and what was left

    def took(self, lie: Lie, count: int = 1) -> str | None:
        """Count it. Returns why the stream must be closed, if this was more than is allowed; else None."""
        if lie is not Lie.BEAT:  # beats are no lie until there are too many
            self._counted(lie, count)
        per_s, at_most = ALLOWED[lie]
        now_us = self._now_us()
        since_us, left = self._left.get(lie, (now_us, float(at_most)))
        left = min(float(at_most), left + (now_us - since_us) * per_s / 1_000_000) - count
        self._left[lie] = now_us, left
        if left >= 0:
            return None
        if lie is Lie.BEAT:
            self._counted(lie, count)
        return f"the runner {_WORDS[lie]}: more than {at_most} of them"
