"""Seals the audit log now and then. Every controller tries; PostgreSQL lets one at a time do it."""

from collections.abc import Awaitable, Callable
from typing import Final

from cronring.controller.ports.audit_chain import Sealed
from cronring.controller.ports.clock import Clock
from cronring.controller.runtime.log import Log
from cronring.controller.runtime.rounds import go_round
from cronring.schema.audit_chain import ChainLink

INTERVAL_S: Final = 1.0
FAILED_S: Final = 10.0  # after a failed round, the pause before the next one
# How often the head is logged. Who changes this database can't change a log that was sent to another machine.
TOLD_NS: Final = 60_000_000_000


class Sealing:
    """How far behind the chain is, by this controller's own rounds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rows = 0
        self._unsealed = 0
        self._oldest_ms = 0
        self._head: ChainLink | None = None  # not told yet
        self._told_ns: int | None = None

    async def go_on(self, seal: Callable[[], Awaitable[Sealed]], log: Log) -> None:
        """For ever; a round that fails is tried again."""

        async def once() -> float:
            done = await seal()
            self._rows += done.rows
            self._unsealed = max(0, done.unsealed - done.rows)
            self._oldest_ms = done.oldest_ms if self._unsealed else 0
            self._tell(done.head if done.rows else self._head, log)
            return 0 if done.rows and self._unsealed else INTERVAL_S

        def failed(error: Exception) -> None:
            log.warning("audit_log_not_sealed", reason=str(error))

        await go_round(once, failed, pause_s=INTERVAL_S, failed_s=FAILED_S)

    def _tell(self, head: ChainLink | None, log: Log) -> None:
        self._head = head
        now_ns = self._clock.now_ns()
        if head is None or (self._told_ns is not None and now_ns - self._told_ns < TOLD_NS):
            return
        log.info("audit_log_sealed", seq=head.seq, hash=head.hash.hex())
        self._head, self._told_ns = None, now_ns

    def counters(self) -> dict[str, float]:
        """For Metrics.add_counters."""
        return {"audit_log_sealed_rows": float(self._rows)}

    def gauges(self) -> dict[str, float]:
        """For Metrics.add_gauges."""
        return {
            "audit_log_unsealed_rows": float(self._unsealed),
            "audit_log_unsealed_seconds": self._oldest_ms / 1_000,
        }
