"""Refusals on record. They are counted in memory by who, what and from where, and written beside the calls.

A flood of refusals costs PostgreSQL one row a minute for each group, for GROUPS_MAX groups at most. Those of further
groups share a row, `others`.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from cronring.controller.errors import StoreError, StoreUnavailable
from cronring.controller.ports.audit_chain import NotedRefusal
from cronring.controller.ports.caller import call_in_hand
from cronring.controller.runtime.log import Log
from cronring.controller.runtime.rounds import go_round
from cronring.schema.address import host_of
from cronring.schema.identity import NOBODY
from cronring.schema.visible import visible_line

GROUPS_MAX: Final = 100
ROW_EACH_S: Final = 60.0  # of one group
INTERVAL_S: Final = 1.0
FAILED_S: Final = 10.0  # after a failed write, the pause before the next one
WHY_LENGTH_MAX: Final = 300
ORIGIN_LENGTH_MAX: Final = 100
OTHERS: Final = "others"
# What the metric calls them, and what gRPC does.
CODES: Final = {
    "unauthenticated": "UNAUTHENTICATED", "forbidden": "PERMISSION_DENIED", "login": "UNAUTHENTICATED",
}  # fmt: skip

Group = tuple[str, str, str, str]
"""Code, principal, method, origin."""

Write = Callable[[Sequence[NotedRefusal]], Awaitable[None]]


@dataclass(slots=True)
class _Count:
    """`times`: not written yet, since `first_s`."""

    first_s: float
    why: str
    times: int = 0
    written_s: float | None = None


class RefusalLog:
    """cronring.controller.ports.audit_chain.OnRefusal. `counted`: the metric's. `now_s`: a monotonic clock."""

    def __init__(self, counted: Callable[[str, int], None], now_s: Callable[[], float]) -> None:
        self._counted = counted
        self._now_s = now_s
        self._groups: dict[Group, _Count] = {}
        self._dropped = 0

    def __call__(self, what: str, count: int = 1, *, why: str = "") -> None:
        """Hot in a flood: it only counts."""
        self._counted(what, count)
        code = CODES.get(what)
        if code is None:
            return
        call = call_in_hand()
        group = (code, str(call.principal), call.method, host_of(call.origin)[:ORIGIN_LENGTH_MAX])
        if group not in self._groups and len(self._groups) >= GROUPS_MAX:
            group = (code, str(NOBODY), OTHERS, "")
        found = self._groups.get(group)
        if found is None:
            found = self._groups[group] = _Count(self._now_s(), why)
        if not found.times:
            found.first_s, found.why = self._now_s(), why
        found.times += count

    async def go_on(self, write: Write, log: Log) -> None:
        """For ever. Counts that can't be written stay, and are written later."""

        async def once() -> float:
            await self._write(write, self._due())
            return INTERVAL_S

        def failed(error: Exception) -> None:
            log.warning("refusals_not_written", reason=str(error))

        await go_round(once, failed, pause_s=INTERVAL_S, failed_s=FAILED_S)

    async def leave(self, write: Write, log: Log) -> None:
        """Write the last counts, even of groups that had a row less than a minute ago."""
        left = [group for group, count in self._groups.items() if count.times]
        try:
            await self._write(write, left)
        except (StoreError, StoreUnavailable) as error:
            self._dropped += sum(self._groups[group].times for group in left)
            log.warning("refusals_dropped", refusals=self._dropped, reason=str(error))

    def _due(self) -> list[Group]:
        now_s = self._now_s()
        for group, count in list(self._groups.items()):
            if not count.times and count.written_s is not None and now_s - count.written_s >= ROW_EACH_S:
                del self._groups[group]  # makes room for another group
        return [
            group
            for group, count in self._groups.items()
            if count.times and (count.written_s is None or now_s - count.written_s >= ROW_EACH_S)
        ]

    async def _write(self, write: Write, groups: Sequence[Group]) -> None:
        """Raises StoreError, StoreUnavailable; then all of them are left as they were."""
        if not groups:
            return
        now_s = self._now_s()
        rows = [_row(group, self._groups[group], now_s) for group in groups]
        await write(rows)
        for group, row in zip(groups, rows, strict=True):
            self._groups[group].times -= row.times
            self._groups[group].written_s = now_s

    def counters(self) -> dict[str, float]:
        """For Metrics.add_counters."""
        return {"audit_log_refusals_dropped": float(self._dropped)}

    def gauges(self) -> dict[str, float]:
        """For Metrics.add_gauges."""
        return {"audit_log_refusals_waiting": float(sum(count.times for count in self._groups.values()))}


def _row(group: Group, count: _Count, now_s: float) -> NotedRefusal:
    code, principal, method, origin = group
    why = "more was refused than is told one by one" if method == OTHERS else visible_line(count.why)
    if len(why) > WHY_LENGTH_MAX:
        why = f"{why[: WHY_LENGTH_MAX - 1]}…"
    return NotedRefusal(round((now_s - count.first_s) * 1_000), code, count.times, principal, method, origin, why)
