"""Keys of requests in memory; tests/conformance holds them to PostgreSQL's."""

from collections.abc import Callable
from typing import NamedTuple

from cronring.controller.errors import TooManyKeys
from cronring.controller.ports.request_keys import GIVEN_UP_MS, KEPT_MS, KEYS_MAX, FormerRequest, RequestKey


class _Row(NamedTuple):
    request_hash: bytes
    begun_us: int
    answer: bytes | None


class MemoryRequestKeys:
    """cronring.controller.ports.request_keys.RequestKeys. `now_us`: since 1970."""

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self._rows: dict[RequestKey, _Row] = {}

    async def begin(self, key: RequestKey, request_hash: bytes) -> int | FormerRequest:
        """Raises TooManyKeys."""
        now_us = self._now_us()
        self._rows = {each: row for each, row in self._rows.items() if now_us - row.begun_us < KEPT_MS * 1_000}
        row = self._rows.get(key)
        if row is not None:
            return FormerRequest(row.request_hash, row.answer, now_us - row.begun_us > GIVEN_UP_MS * 1_000)
        if sum(each.principal == key.principal for each in self._rows) >= KEYS_MAX:
            raise TooManyKeys(f"{key.principal} has used {KEYS_MAX} idempotency keys within a day, and may use no more")
        self._rows[key] = _Row(request_hash, now_us, None)
        return now_us

    async def end(self, key: RequestKey, begun_at: int, answer: bytes) -> None:
        row = self._rows.get(key)
        if row is not None and row.begun_us == begun_at:
            self._rows[key] = row._replace(answer=answer)

    async def forget(self, key: RequestKey, begun_at: int) -> None:
        row = self._rows.get(key)
        if row is not None and row.begun_us == begun_at and row.answer is None:
            del self._rows[key]
