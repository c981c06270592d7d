"""One GET for an issuer's keys: bounded in time and size. No redirect is followed, and no proxy guessed."""

import asyncio
from typing import Final, Protocol

import aiohttp

from cronring.controller.identity.jwks import BYTES_MAX
from cronring.schema.duration import measured

TIMEOUT_S: Final = 5.0


class Unfetched(Exception):
    """There was no answer with status 200. The message says what there was instead."""


class KeyFetching(Protocol):
    """What asks issuers."""

    async def get(self, url: str) -> bytes:
        """The body of the answer. Raises Unfetched."""
        ...

    async def close(self) -> None: ...


class HttpKeyFetching:
    """By aiohttp, with one session for all issuers. It is opened in the loop that first asks."""

    def __init__(self, timeout_s: float = TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._session: aiohttp.ClientSession | None = None

    async def get(self, url: str) -> bytes:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._read(url)
        except TimeoutError:
            raise Unfetched(f"no answer within {measured(self._timeout_s * 1_000)}") from None
        except aiohttp.ClientConnectorCertificateError:
            raise Unfetched("its certificate is not trusted here") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Unfetched(f"no connection, or nothing that speaks HTTP ({type(error).__name__})") from None

    async def _read(self, url: str) -> bytes:
        headers = {"accept": "application/json", "accept-encoding": "identity", "user-agent": "cronring"}
        async with self._opened().get(url, headers=headers, allow_redirects=False) as response:
            if 300 <= response.status < 400:
                raise Unfetched(f"HTTP {response.status}: redirects are not followed; configure where it leads to")
            if response.status != 200:
                raise Unfetched(f"HTTP {response.status}")
            body = bytearray()
            async for piece in response.content.iter_any():
                body += piece
                if len(body) > BYTES_MAX:
                    raise Unfetched(f"its answer has more than {BYTES_MAX:,} bytes")
            return bytes(body)

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
