"""PostgreSQL of a year, which notices whoever asks it again and again for what it has just been told."""

from collections import Counter
from typing import Final

from cronring.virtual.clock import SECOND
from tests.simulation.database import Answer, Call, Database

STATEMENTS_A_SECOND: Final = 100  # of one controller: a dozen jobs, and what it does for itself, take far less


class WatchedDatabase(Database):
    """Invariant 7, as far as a handful of jobs can show it: nobody spins."""

    _second = -1
    _asked: Counter[str]

    def ask(self, source: str, call: Call, answer: Answer) -> None:
        second = self._clock.now_ns // SECOND
        if second != self._second:
            self._second, self._asked = second, Counter()
        self._asked[source] += 1
        assert self._asked[source] <= STATEMENTS_A_SECOND, f"work: {source} asks PostgreSQL without end"
        super().ask(source, call, answer)
