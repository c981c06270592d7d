"""The only randomness the core may draw; the shell seeds it, the simulator replays it."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")


class Chance(Protocol):
    """A subset of random.Random."""

    def random(self) -> float: ...
    def shuffle(self, x: list[T], /) -> None: ...
    def sample(self, population: Sequence[T], k: int) -> list[T]: ...
