"""PostgreSQL's NOTIFY, on a connection of its own. A hint: a lost one costs time, never a tick."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final

import asyncpg

from cronring.controller.config import DEFAULT_SCHEMA
from cronring.controller.errors import StoreUnavailable
from cronring.controller.ports.store import Notified, Topic
from cronring.controller.store.connect import Connection, connect
from cronring.controller.store.errors import translated
from cronring.sql.parameters import GetNow

_FIRST_BACKOFF_S: Final = 0.1
_LAST_BACKOFF_S: Final = 5.0
# A probe finds out that a connection has died without a word.
_PROBE_S: Final = 15.0
_PROBE_TIMEOUT_S: Final = 5.0


class PostgresNotifications:
    """cronring.controller.ports.store.Notifications. Equal notifications that come together are told once."""

    def __init__(self, url: str, application: str, *, schema: str = DEFAULT_SCHEMA) -> None:
        self._url = url
        self._schema = schema
        self._application = application

    async def listen(self) -> AsyncIterator[frozenset[Notified]]:
        """What was notified, for ever. After each new connection it tells every topic, as notifications may be missed.

        Raises StoreError if PostgreSQL refuses for good. All else it retries.
        """
        backoff_s = _FIRST_BACKOFF_S
        while True:
            try:
                connection = await connect(self._url, self._application, schema=self._schema)
            except StoreUnavailable:
                await asyncio.sleep(backoff_s)
                backoff_s = min(backoff_s * 2, _LAST_BACKOFF_S)
                continue
            backoff_s = _FIRST_BACKOFF_S
            async with contextlib.aclosing(_listen_on(connection, self._schema)) as notified:
                async for told in notified:
                    yield told


async def _listen_on(connection: Connection, schema: str) -> AsyncGenerator[frozenset[Notified], None]:
    """What one connection hears, until it ends. Other clusters may use other schemas of this database, with their own
    channels.
    """
    heard = asyncio.Event()
    notified = {Notified(topic) for topic in Topic}

    def wake(*_: object) -> None:
        heard.set()

    def take(_: object, __: int, channel: str, payload: object) -> None:
        topic = Topic(channel.removeprefix(f"{schema}."))
        notified.add(Notified(topic, str(payload) if topic is Topic.PLACES else ""))
        heard.set()

    connection.add_termination_listener(wake)
    try:
        with translated("listening"):
            for topic in Topic:
                await connection.add_listener(f"{schema}.{topic.value}", take)
        heard.set()
        while True:
            await _heard_or_probed(connection, heard)
            if connection.is_closed():
                return
            heard.clear()
            told = frozenset(notified)
            notified.clear()
            yield told
    except StoreUnavailable:
        return
    finally:
        await _close(connection)


async def _heard_or_probed(connection: Connection, heard: asyncio.Event) -> None:
    while not heard.is_set():
        try:
            async with asyncio.timeout(_PROBE_S):
                await heard.wait()
        except TimeoutError:
            with translated("listening"):
                await connection.fetchval(*GetNow(), timeout=_PROBE_TIMEOUT_S)


async def _close(connection: Connection) -> None:
    # Without a farewell, which a broken connection would delay: nothing is lost with it.
    with contextlib.suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
        connection.terminate()
