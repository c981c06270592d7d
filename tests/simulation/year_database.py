"""PostgreSQL of a year, which notices whoever asks it again and again for what it has just been told."""

from collections import Counter
from typing import Final

from cronring.virtual.clock import SECOND
from tests.simulation.database import Answer, Call, Database

STATEMENTS_A_SECOND: Final = 100  # of one controller, beyond one for each run: what it does for itself takes far less


class WatchedDatabase(Database):
    """Invariant 7, as far as a handful of jobs can show it: nobody spins."""

    _second = -1
    _executions = 0  # when the second began
    _asked: Counter[str]

    def ask(self, source: str, call: Call, answer: Answer) -> None:
        second, executions = self._clock.now_ns // SECOND, len(self.store.executions)
        if second != self._second:
            self._second, self._executions, self._asked = second, executions, Counter()
        self._asked[source] += 1
        most = STATEMENTS_A_SECOND + 2 * (executions - self._executions)
        assert self._asked[source] <= most, f"work: {source} asks PostgreSQL without end"
        super().ask(source, call, answer)
