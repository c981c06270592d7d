"""Lifeguard's local health multiplier: a member that seems slow itself gives others more time."""

from typing import Final

# Lifeguard's S. At the worst a probe takes (8 + 1) times as long.
WORST: Final = 8


class Health:
    """A score from 0 (well) to WORST. Intervals and timeouts of probes are multiplied by score + 1.

    What moves it (section IV.A of the paper):

    - a probe answered in time: -1;
    - a failed probe without a single nack: +1;
    - having to refute a suspicion of myself: +1;
    - having slept past a deadline: +1.

    The paper adds 1 for each nack that is missing. But one nack in time shows that I am well. Helpers that died along
    with the target would make me slow just when several members have to be found dead.
    """

    __slots__ = ("score",)

    def __init__(self) -> None:
        self.score = 0

    def better(self) -> None:
        self.score = max(0, self.score - 1)

    # docs/decisions/0015: the paper counts each missing nack; we don't
    def worse(self) -> None:
        self.score = min(WORST, self.score + 1)

    def scale(self, duration_ns: int) -> int:
        return duration_ns * (self.score + 1)
