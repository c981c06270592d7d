"""Keys of requests in PostgreSQL. Each statement commits by itself: the request's work is another transaction."""

from cronring.controller.errors import TooManyKeys
from cronring.controller.ports.request_keys import GIVEN_UP_MS, KEPT_MS, KEYS_MAX, FormerRequest, RequestKey
from cronring.controller.store.pool import Database
from cronring.sql.parameters import BeginRequest, CountRequestKeys, EndRequest, ForgetRequest, GetRequest


class PostgresRequestKeys:
    """cronring.controller.ports.request_keys.RequestKeys."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, key: RequestKey, request_hash: bytes) -> int | FormerRequest:
        """Raises TooManyKeys."""
        counting = CountRequestKeys(principal=key.principal, most=KEYS_MAX)
        while True:
            if (await self._database.fetch(counting))[0][0] >= KEYS_MAX:
                if former := await self._former(key):
                    return former
                raise TooManyKeys(
                    f"{key.principal} has used {KEYS_MAX} idempotency keys within a day, and may use no more"
                )
            begun = await self._database.fetch(
                BeginRequest(request_hash=request_hash, kept_ms=KEPT_MS, **key._asdict())
            )
            if begun:
                return int(begun[0]["begun_at"])
            if former := await self._former(key):  # None: it has been forgotten just now, so begin again
                return former

    async def _former(self, key: RequestKey) -> FormerRequest | None:
        found = await self._database.fetch(GetRequest(given_up_ms=GIVEN_UP_MS, **key._asdict()))
        return FormerRequest(*found[0]) if found else None

    async def end(self, key: RequestKey, begun_at: int, answer: bytes) -> None:
        await self._database.fetch(EndRequest(begun_at=begun_at, answer=answer, **key._asdict()))

    async def forget(self, key: RequestKey, begun_at: int) -> None:
        await self._database.fetch(ForgetRequest(begun_at=begun_at, **key._asdict()))
