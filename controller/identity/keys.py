"""The keys of one issuer, by where they come from. Old ones go on while it can't be asked."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from cronring.controller.config import ConfigError
from cronring.controller.errors import IssuerAway
from cronring.controller.identity.fetching import KeyFetching, Unfetched
from cronring.controller.identity.jwks import BYTES_MAX, CheckingKey, Unusable, read_keys
from cronring.controller.ports.clock import Clock
from cronring.controller.ports.identity import TokenRefused

_SECOND_NS: Final = 1_000_000_000
REFRESH_NS: Final = 900 * _SECOND_NS  # after which they are fetched again, beside a call
UNKNOWN_NS: Final = 30 * _SECOND_NS  # between two fetches because of names that nobody knows
FAILED_NS: Final = 30 * _SECOND_NS  # between two tries at an issuer who doesn't answer, with old keys
NONE_NS: Final = 5 * _SECOND_NS  # without any
LOOK_NS: Final = _SECOND_NS  # between two looks at a file

Reading = Callable[[bytes], tuple[CheckingKey, ...]]


class IssuerKeys(Protocol):
    """Where one issuer's keys come from."""

    trouble: str  # why they could not be read when last tried; "": they were

    async def find(self, kid: str | None, algorithm: str) -> CheckingKey:
        """The key that a token names. Raises TokenRefused, also for tokens that name none where there are several."""
        ...

    def age_s(self) -> float | None:
        """Since they were read; None: they have never been."""
        ...

    async def close(self) -> None: ...


class FileKeys:
    """In a file, which is read at the start, and again when it has changed."""

    def __init__(self, name: str, path: Path, read: Reading, clock: Clock) -> None:
        """Raises ConfigError where it can't be used from the first."""
        self.trouble = ""
        self._name = name
        self._path = path
        self._read = read
        self._clock = clock
        self._looked_ns = self._read_ns = clock.now_ns()
        try:
            self._stamp = self._stamped()
            self._keys = self._loaded()
        except (OSError, Unusable) as error:
            raise ConfigError(f"{path}, of issuer {name!r}, can't be used: {_reason(error)}") from None

    async def find(self, kid: str | None, algorithm: str) -> CheckingKey:
        self._look()
        found = _chosen(self._keys, self._name, kid, algorithm)
        if found is None:
            raise _unknown(self._keys, self._name, kid)
        return found

    def age_s(self) -> float | None:
        return (self._clock.now_ns() - self._read_ns) / _SECOND_NS

    async def close(self) -> None:
        """Nothing is open."""

    def _look(self) -> None:
        now_ns = self._clock.now_ns()
        if now_ns - self._looked_ns < LOOK_NS:
            return
        self._looked_ns = now_ns
        try:
            stamp = self._stamped()
            if stamp != self._stamp or self.trouble:
                self._keys, self._stamp, self._read_ns = self._loaded(), stamp, now_ns
            self.trouble = ""
        except (OSError, Unusable) as error:  # it is being written, or gone: what was read counts
            self.trouble = f"{self._path} can't be used: {_reason(error)}"

    def _stamped(self) -> tuple[int, int, int]:
        found = self._path.stat()
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _loaded(self) -> tuple[CheckingKey, ...]:
        with self._path.open("rb") as file:
            return self._read(file.read(BYTES_MAX + 1))


class UrlKeys:
    """From an issuer's URL: fetched when first needed, and then beside calls, which go on with what there is.

    A name that isn't known fetches them as well, as keys are changed. That is done at most once in UNKNOWN_NS, whoever
    writes what names into tokens. However many want it, one fetch is under way.
    """

    def __init__(self, name: str, url: str, allowed: frozenset[str], fetching: KeyFetching, clock: Clock) -> None:
        self.trouble = ""
        self._name = name
        self._url = url
        self._allowed = allowed
        self._fetching = fetching
        self._clock = clock
        self._keys: tuple[CheckingKey, ...] = ()
        self._fetched_ns: int | None = None
        self._tried_ns: int | None = None
        self._searched_ns: int | None = None
        self._running: asyncio.Task[None] | None = None

    async def find(self, kid: str | None, algorithm: str) -> CheckingKey:
        """Raises IssuerAway while it can't be told."""
        asked_now = not self._keys
        if asked_now:
            await self._fetch_first()
        elif self._is_due():
            self._start()
        found = _chosen(self._keys, self._name, kid, algorithm)
        if found is None and not asked_now and self._may_search():
            await self._fetched()
            found = _chosen(self._keys, self._name, kid, algorithm)
        if found is None:
            raise self._away() if self.trouble else _unknown(self._keys, self._name, kid)
        return found

    def age_s(self) -> float | None:
        return None if self._fetched_ns is None else (self._clock.now_ns() - self._fetched_ns) / _SECOND_NS

    async def close(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def _fetch_first(self) -> None:
        if self._running is not None or self._since(self._tried_ns) >= NONE_NS:
            await self._fetched()
        if not self._keys:
            raise self._away()

    def _is_due(self) -> bool:
        return self._since(self._fetched_ns) >= REFRESH_NS and self._since(self._tried_ns) >= FAILED_NS

    def _may_search(self) -> bool:
        """Whoever comes while keys are fetched waits for these."""
        if self._running is not None:
            return True
        if self._since(self._searched_ns) < UNKNOWN_NS:
            return False
        self._searched_ns = self._clock.now_ns()
        return True

    def _since(self, instant_ns: int | None) -> float:
        return float("inf") if instant_ns is None else self._clock.now_ns() - instant_ns

    async def _fetched(self) -> None:
        """Whoever waits may go away; the fetch goes on, for the others."""
        await asyncio.shield(self._start())

    def _start(self) -> "asyncio.Task[None]":
        if self._running is None:
            self._running = asyncio.get_running_loop().create_task(self._fetch(), name=f"keys of {self._name}")
        return self._running

    async def _fetch(self) -> None:
        self._tried_ns = self._clock.now_ns()
        try:
            self._keys = read_keys(await self._fetching.get(self._url), self._allowed)
            self._fetched_ns = self._clock.now_ns()
            self.trouble = ""
        except (Unfetched, Unusable) as error:
            self.trouble = f"{self._url}: {error}"
        finally:
            self._running = None

    def _away(self) -> IssuerAway:
        return IssuerAway(f"the keys of issuer {self._name!r} can't be fetched now from {self.trouble}")


def _chosen(keys: tuple[CheckingKey, ...], name: str, kid: str | None, algorithm: str) -> CheckingKey | None:
    """A key of that name that is for that algorithm; without a name the only one that is."""
    fitting = [key for key in keys if algorithm in key.algorithms and (kid is None or key.kid in {kid, None})]
    named = [key for key in fitting if key.kid == kid] or fitting
    if kid is None and len(fitting) > 1:
        raise TokenRefused(f"its header names no key (`kid`), and issuer {name!r} has {len(fitting)} that it could be")
    return named[0] if named else None


def _unknown(keys: tuple[CheckingKey, ...], name: str, kid: str | None) -> TokenRefused:
    which = "for its algorithm" if kid is None else f"named {kid!r:.100} for its algorithm"
    return TokenRefused(f"issuer {name!r} has no key {which}, among {len(keys)}")


def _reason(error: Exception) -> str:
    return os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
