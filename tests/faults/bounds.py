"""What a trial allows: within which bounds ticks must run, and when they are excused."""

from collections.abc import Mapping
from dataclasses import dataclass, field

LATE_S = 1.0  # what every row of docs/reliability.md asks of a due tick that nothing excuses
RECOVERY_S = 3.0  # after an excuse's end, until everything due is on time again


@dataclass(frozen=True)
class Excuse:
    """From when to when (epoch seconds) nothing could run, and why. Ticks of that time may be late or passed over.

    `verbs`: of these only; empty: of all.
    """

    began: float
    ended: float
    why: str
    verbs: frozenset[str] = frozenset()

    def covers(self, verb: str, tick: float, late_s: float) -> bool:
        """A tick shortly before it began may have been caught as well."""
        return (not self.verbs or verb in self.verbs) and self.began - late_s <= tick <= self.ended


@dataclass
class Bounds:
    """`late_s`: of the start of each tick that no excuse covers. `outcomes`: how runs may end.

    `periods_s`: of every verb, its clock-aligned period in seconds. `beside`: of how many of its runs may go on at
    once, where that is more than one. `one_clock`: PostgreSQL's clock is the machine's; if it isn't (faketime), the
    journal's instants say nothing of ticks, and lateness is that of the books.
    """

    periods_s: Mapping[str, int]
    late_s: float = LATE_S
    outcomes: frozenset[str] = frozenset({"completed"})
    beside: Mapping[str, int] = field(default_factory=dict)
    one_clock: bool = True
    excuses: list[Excuse] = field(default_factory=list)

    def excused(self, verb: str, tick: float) -> bool:
        return any(excuse.covers(verb, tick, self.late_s) for excuse in self.excuses)
