"""What PostgreSQL may do to statements, beyond being away: hang, crawl, have a full disk, give up, crash, fail over.

Everything here has draws of its own, and none while nothing is wrong: worlds without it remain the stories they were.
"""

import inspect
import random
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from cronring.controller.errors import StoreUnavailable
from cronring.controller.store.memory.store import MemoryStore
from cronring.virtual.clock import MS, SECOND, VirtualClock

COMMAND_TIMEOUT_NS: Final = 10 * SECOND  # controller/store/pool.py: then a client gives up an answer that doesn't come
READS: Final = frozenset({
    "find_peers", "get_cron_jobs", "get_overdue_jobs", "get_activations", "get_followers", "get_unfinished",
    "get_lost", "get_overdue_executions",
})  # fmt: skip


class Statement:
    """One that is under way. It is executed once at most, and answered once."""

    def __init__(
        self, source: str, sent_ns: int, answer: Callable[[Any], None], over: Callable[["Statement"], None]
    ) -> None:
        self.source = source
        self.sent_ns = sent_ns
        self.execute: Callable[[], Any] = lambda: None
        self._answer = answer
        self._over = over
        self._executed = False
        self._answered = False

    def run(self) -> Any:
        """Its result. Whoever comes second finds its connection gone."""
        if self._executed:
            return StoreUnavailable("its connection is gone")
        self._executed = True
        return self.execute()

    def forget(self) -> None:
        """It will not be executed any more."""
        self._executed = True

    def answer(self, result: Any) -> None:
        if not self._answered:
            self._answered = True
            self._over(self)
            self._answer(result)


class FullDisk:
    """A store whose writes are refused; 53100 is one of the states after which a statement may well succeed later."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        writes = inspect.iscoroutinefunction(found) and name not in READS
        return self._refuse if writes else found

    @staticmethod
    async def _refuse(*_: Any, **__: Any) -> Any:
        raise StoreUnavailable("could not extend file: No space left on device")


class Trouble:
    """`slow_s`: how long each statement takes. `full`: what share of writes finds no space. `cancelled`: of statements.

    `silent`: whose packets are dropped, without a word to either end; `deaf`: only those that answer them.
    """

    def __init__(self, clock: VirtualClock, rng: random.Random) -> None:
        self._clock = clock
        self.rng = rng
        self._under_way: dict[Statement, None] = {}
        self._hanging: dict[Statement, None] = {}
        self.slow_s = (0.0, 0.0)
        self.slowest_us = 0  # how long a statement has ever been under way
        self.full = 0.0
        self.cancelled = 0.0
        self.silent: dict[str, None] = {}
        self.deaf: dict[str, None] = {}

    def sent(self, source: str, answer: Callable[[Any], None]) -> Statement:
        statement = Statement(source, self._clock.now_ns, answer, lambda over: self._under_way.pop(over, None))
        self._under_way[statement] = None
        return statement

    def takes_ns(self) -> int:
        """So much longer than always."""
        low, high = self.slow_s
        self.slowest_us = max(self.slowest_us, int(high * 1_000_000))
        return int(self.rng.uniform(low, high) * SECOND) if high else 0

    def hangs(self, statement: Statement) -> bool:
        """Its packets are lost. TCP sends them again when that ends, perhaps long after its client has given up."""
        if statement.source not in self.silent:
            return False
        self._hanging[statement] = None
        self._give_up(statement)
        return True

    def swallows(self, statement: Statement) -> bool:
        """It is executed, and its client doesn't hear of it."""
        if statement.source not in self.deaf and statement.source not in self.silent:
            return False
        self._give_up(statement)
        return True

    def _give_up(self, statement: Statement) -> None:
        gone = StoreUnavailable("no answer in time")
        self._clock.call_after(COMMAND_TIMEOUT_NS, lambda: statement.answer(gone))

    def speak(self, source: str) -> None:
        """Packets pass again: what hung arrives, if a kernel still has it."""
        self.silent.pop(source, None)
        self.deaf.pop(source, None)
        for statement in [statement for statement in self._hanging if statement.source == source]:
            del self._hanging[statement]
            if self.rng.random() < 0.7:
                self._clock.call_after(int(self.rng.random() * SECOND), partial(self._arrive, statement))

    def _arrive(self, statement: Statement) -> None:
        self.slowest_us = max(self.slowest_us, (self._clock.now_ns - statement.sent_ns) // 1_000)
        result = statement.run()
        self._clock.call_after(MS, lambda: statement.answer(result))

    def refusal(self) -> StoreUnavailable | None:
        """It was cancelled, and rolled back."""
        if self.cancelled and self.rng.random() < self.cancelled:
            return StoreUnavailable("canceling statement due to statement timeout")
        return None

    def has_space(self) -> bool:
        return not self.full or self.rng.random() >= self.full

    def break_all(self) -> None:
        """Each connection is gone at this instant. Of what was under way some had committed, and nobody is told."""
        for statement in list(self._under_way):
            if self.rng.random() < 0.5:
                statement.run()
            statement.forget()
            self._hanging.pop(statement, None)
            delay_ns = int(self.rng.random() * 20 * MS)
            gone = StoreUnavailable("the server closed the connection")
            self._clock.call_after(delay_ns, partial(statement.answer, gone))

    def end(self) -> None:
        for source in (*self.silent, *self.deaf):
            self.speak(source)
        self.slow_s, self.full, self.cancelled = (0.0, 0.0), 0.0, 0.0
