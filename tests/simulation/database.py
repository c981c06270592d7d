"""PostgreSQL, as controllers see it across a network: slow, now and then away, and not always saying what it did."""

import random
from collections.abc import Callable, Coroutine
from typing import Any, Final

from cronring.controller.core.orders.control import NeverRuns
from cronring.controller.errors import Conflict, NotFound, StoreError, StoreUnavailable
from cronring.controller.store.memory.store import MemoryStore
from cronring.virtual.clock import MS, VirtualClock
from cronring.virtual.performing import run_now
from tests.simulation.history import RecordingStore
from tests.simulation.network import Network
from tests.simulation.trouble import FullDisk, Statement, Trouble

ADDRESS: Final = "database"
EPOCH_US: Final = 1_800_000_000_000_000  # 15 January 2027
STATEMENT_TIMEOUT_NS: Final = 2_000 * MS

Call = Callable[[MemoryStore], Coroutine[Any, Any, Any]]
Answer = Callable[[Any], None]


class Database:
    """`away`: nothing answers. `breaking`: how likely a statement's connection breaks around it."""

    def __init__(
        self,
        clock: VirtualClock,
        network: Network,
        rng: random.Random,
        epoch_us: int = EPOCH_US,
        store: type[RecordingStore] = RecordingStore,
    ) -> None:
        self._clock = clock
        self._network = network
        self._rng = rng
        self._epoch_us = epoch_us
        self._stepped_us = 0
        self.stepped_back_us = 0  # all steps back together
        self.stepped_all_us = 0  # all steps together, either way
        self.stepped_after = 0  # the latest execution there was when it last stepped
        self.estimates_off_us = 0  # how wrong who asked for something has ever been about this clock
        self.away = False
        self.breaking = 0.0
        self.statements = 0
        self.notified: list[Callable[[], None]] = []
        self.store = store(self.now_us, self._notify)
        self.trouble = Trouble(clock, random.Random(epoch_us))

    def now_us(self) -> int:
        return self._epoch_us + self._clock.now_ns // 1_000 + self._stepped_us

    def step_clock(self, by_us: int) -> None:
        self._stepped_us += by_us
        self.stepped_back_us += max(0, -by_us)
        self.stepped_all_us += abs(by_us)
        self.stepped_after = len(self.store.executions)

    def was_estimated(self, now_us: int) -> None:
        self.estimates_off_us = max(self.estimates_off_us, abs(now_us - self.now_us()))

    def _notify(self) -> None:
        for listener in list(self.notified):
            self._clock.call_after(self._delay_ns(), listener)

    def _delay_ns(self) -> int:
        return int((0.1 + self._rng.random() ** 4 * 5) * MS)

    def ask(self, source: str, call: Call, answer: Answer) -> None:
        """Run `call` on the store some time later, and give its result or its error to `answer`."""
        self.statements += 1
        there_ns, back_ns = self._delay_ns(), self._delay_ns()
        fate = self._rng.random()
        late_ns = int(self._rng.random() * STATEMENT_TIMEOUT_NS)
        broken = StoreUnavailable("the connection broke")
        statement = self.trouble.sent(source, answer)
        statement.execute = lambda: self._run(call)
        there_ns += self.trouble.takes_ns() + self._network.extra_ns(source, ADDRESS)
        back_ns += self._network.extra_ns(ADDRESS, source)
        if self.away or not self._network.reaches(source, ADDRESS):
            statement.forget()
            self._clock.call_after(late_ns, lambda: statement.answer(broken))
        elif self.trouble.hangs(statement):
            pass
        elif fate >= self.breaking:
            self._clock.call_after(there_ns, lambda: self._execute(statement, back_ns))
        elif fate < self.breaking / 3:  # never arrives
            self._clock.call_after(there_ns, lambda: statement.answer(broken))
        elif fate < self.breaking * 2 / 3:  # committed, but the answer is lost
            self._clock.call_after(there_ns, statement.run)
            self._clock.call_after(there_ns + back_ns, lambda: statement.answer(broken))
        else:  # the connection breaks first, and the statement commits some time after
            self._clock.call_after(there_ns, lambda: statement.answer(broken))
            self._clock.call_after(there_ns + late_ns // 4, statement.run)

    def _execute(self, statement: Statement, back_ns: int) -> None:
        if self.away or not self._network.reaches(statement.source, ADDRESS):
            statement.forget()
            self._clock.call_after(back_ns, lambda: statement.answer(StoreUnavailable("the server is gone")))
            return
        result = statement.run()
        self._clock.call_after(back_ns, lambda: self._deliver(statement, result))

    def _deliver(self, statement: Statement, result: Any) -> None:
        """An outage between the commit and the answer leaves the outcome unknown."""
        reaches = not self.away and self._network.reaches(ADDRESS, statement.source)
        if not self.trouble.swallows(statement):
            statement.answer(result if reaches else StoreUnavailable("the answer was lost"))

    def _run(self, call: Call) -> Any:
        refused = self.trouble.refusal()
        if refused is not None:
            return refused
        store: Any = self.store if self.trouble.has_space() else FullDisk(self.store)
        try:
            return run_now(call(store))
        except (StoreError, StoreUnavailable, NotFound, Conflict, NeverRuns) as refusal:
            return refusal
