"""Lives: how long a controller held its lease, or a runner was seen, without a gap. The ring follows from them."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

CONTROLLER: Final = "controller"
RUNNER: Final = "runner"


class Life(NamedTuple):
    """`until_at` None: it goes on. `departed`: its member left by itself; False: it was lost.

    `address`: of a controller, where people connect to; of a runner, its machine.
    """

    kind: str
    member: str
    from_at: int
    until_at: int | None
    departed: bool
    address: str
    version: str
    deployments: tuple[str, ...] = ()

    def spans(self, at: int) -> bool:
        """Whether it lived at an instant."""
        return self.from_at <= at and (self.until_at is None or at < self.until_at)


class LeaseGap(NamedTuple):
    """A time in which no controller held a lease. `until_at` None: it goes on."""

    from_at: int
    until_at: int | None


def alive(lives: Iterable[Life], kind: str, at: int) -> list[Life]:
    """Those of a kind that lived at an instant, by their members' names."""
    return sorted((life for life in lives if life.kind == kind and life.spans(at)), key=lambda life: life.member)


def gaps(lives: Iterable[Life]) -> list[LeaseGap]:
    """Between the lives of controllers, in order. Before the first there is none."""
    found: list[LeaseGap] = []
    covered_to: int | None = None
    for life in sorted((life for life in lives if life.kind == CONTROLLER), key=lambda life: life.from_at):
        if covered_to is not None and life.from_at > covered_to:
            found.append(LeaseGap(covered_to, life.from_at))
        if life.until_at is None:
            return found
        covered_to = life.until_at if covered_to is None else max(covered_to, life.until_at)
    if covered_to is not None:
        found.append(LeaseGap(covered_to, None))
    return found


def gap_at(found: Sequence[LeaseGap], at: int) -> LeaseGap | None:
    """The one that an instant lies in."""
    return next((gap for gap in found if gap.from_at <= at and (gap.until_at is None or at < gap.until_at)), None)
