"""What issuers are asked by HTTP: bounded in time and size. No redirect is followed, and no proxy guessed."""

import asyncio
from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

import aiohttp

from cronring.controller.identity.jwks import BYTES_MAX
from cronring.schema.duration import measured

TIMEOUT_S: Final = 5.0


class Unfetched(Exception):
    """There was no answer with status 200. The message says what there was instead."""


class Fetched(NamedTuple):
    status: int
    body: bytes


class KeyFetching(Protocol):
    """What asks issuers."""

    async def get(self, url: str) -> bytes:
        """The body of the answer. Raises Unfetched."""
        ...

    async def close(self) -> None: ...


class HttpKeyFetching:
    """By aiohttp, with one session for all that is asked. It is opened in the loop that first asks."""

    def __init__(self, timeout_s: float = TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._session: aiohttp.ClientSession | None = None

    async def get(self, url: str) -> bytes:
        """The body of an answer with status 200. Raises Unfetched."""
        found = await self._asked("GET", url, {}, None)
        if found.status != 200:
            raise Unfetched(f"HTTP {found.status}")
        return found.body

    async def post(self, url: str, form: Mapping[str, str], headers: Mapping[str, str]) -> Fetched:
        """What is said to a form, whatever its status. Raises Unfetched."""
        return await self._asked("POST", url, headers, form)

    async def _asked(
        self, method: str, url: str, headers: Mapping[str, str], form: Mapping[str, str] | None
    ) -> Fetched:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._read(method, url, headers, form)
        except TimeoutError:
            raise Unfetched(f"no answer within {measured(self._timeout_s * 1_000)}") from None
        except aiohttp.ClientConnectorCertificateError:
            raise Unfetched("its certificate is not trusted here") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Unfetched(f"no connection, or nothing that speaks HTTP ({type(error).__name__})") from None

    async def _read(self, method: str, url: str, headers: Mapping[str, str], form: Mapping[str, str] | None) -> Fetched:
        sent = {"accept": "application/json", "accept-encoding": "identity", "user-agent": "cronring", **headers}
        async with self._opened().request(method, url, headers=sent, data=form, allow_redirects=False) as response:
            if 300 <= response.status < 400:
                raise Unfetched(f"HTTP {response.status}: redirects are not followed; configure where it leads to")
            body = bytearray()
            async for piece in response.content.iter_any():
                body += piece
                if len(body) > BYTES_MAX:
                    raise Unfetched(f"its answer has more than {BYTES_MAX:,} bytes")
            return Fetched(response.status, bytes(body))

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=8, force_close=True),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            )
        return self._session

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
