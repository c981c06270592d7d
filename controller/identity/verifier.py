"""Whose a JWT is: controller.ports.identity.Verifier for all issuers of the identity file."""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from jwt import PyJWS, PyJWTError

from cronring.controller.identity.claims import principal_of
from cronring.controller.identity.compact import Compact, looks_compact, read_compact
from cronring.controller.identity.fetching import HttpKeyFetching, KeyFetching
from cronring.controller.identity.jwks import read_keys, read_secret
from cronring.controller.identity.keys import FileKeys, IssuerKeys, UrlKeys
from cronring.controller.identity.settings import IssuerSettings
from cronring.controller.ports.clock import Clock
from cronring.controller.ports.identity import TokenRefused
from cronring.schema.identity import Principal

REMEMBERED_MAX: Final = 1_024
REMEMBERED_NS: Final = 60_000_000_000
_US_NS: Final = 1_000


class _Known(NamedTuple):
    """A token that was checked, until when it needs no other check."""

    principal: Principal
    until_ns: int


class ExpectedId(NamedTuple):
    """What an ID token has to say beside the rest: its issuer, by our name; for which client, and which login."""

    issuer: str
    client_id: str
    nonce: str


class JwtVerifier:
    """Checks tokens by keys that it keeps. Call `close` at the end, in the loop that asked."""

    def __init__(self, issuers: Sequence[IssuerSettings], clock: Clock, fetching: KeyFetching | None = None) -> None:
        """Raises ConfigError for a file of keys, or of a secret, that can't be used."""
        self._clock = clock
        self._fetching = fetching or HttpKeyFetching()
        self._settings = {settings.issuer: settings for settings in issuers}
        self._keys = {settings.name: self._keys_of(settings) for settings in issuers}
        self._known: dict[bytes, _Known] = {}
        self._jws = PyJWS()

    def knows(self, token: str) -> bool:
        return looks_compact(token)

    async def principal(self, token: str) -> Principal:
        """Raises TokenRefused; IssuerAway where its issuer's keys can't be had now."""
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        known = self._known.get(digest)
        if known is not None and self._clock.now_ns() < known.until_ns:
            return known.principal
        try:
            return await self._checked(token, digest)
        except TokenRefused as refused:
            raise TokenRefused(f"this token is refused: {refused}") from None

    async def named_by(self, token: str, expected: ExpectedId) -> Principal:
        """Whom an ID token names, right after a login. Raises TokenRefused, IssuerAway."""
        try:
            read = read_compact(token)
            settings = self._settings_for(read)
            await self._check_signed(read, settings)
            _check_login(read, settings, expected)
            return principal_of(read.claims, replace(settings, audience=expected.client_id), self._clock.wall_us())
        except TokenRefused as refused:
            raise TokenRefused(f"the ID token of this login is refused: {refused}") from None

    def ages_s(self) -> dict[str, float]:
        """By issuer, how old its keys are: a gauge. Who has none yet isn't there."""
        ages = {name: keys.age_s() for name, keys in self._keys.items()}
        return {name: age_s for name, age_s in ages.items() if age_s is not None}

    def troubles(self) -> dict[str, str]:
        """By issuer, why its keys could not be read when last tried: for the doctor. Old ones may go on."""
        return {name: keys.trouble for name, keys in self._keys.items() if keys.trouble}

    async def close(self) -> None:
        await asyncio.gather(*(keys.close() for keys in self._keys.values()))
        await self._fetching.close()

    async def _checked(self, token: str, digest: bytes) -> Principal:
        read = read_compact(token)
        settings = self._settings_for(read)
        await self._check_signed(read, settings)
        now_us = self._clock.wall_us()
        found = principal_of(read.claims, settings, now_us)
        self._remember(digest, found, settings, now_us)
        return found

    def _keys_of(self, settings: IssuerSettings) -> IssuerKeys:
        allowed = frozenset(settings.allowed)
        if settings.secret_file is not None:
            return FileKeys(settings.name, settings.secret_file, read_secret, self._clock)
        if settings.jwks_file is not None:
            return FileKeys(settings.name, settings.jwks_file, partial(read_keys, allowed=allowed), self._clock)
        return UrlKeys(settings.name, settings.jwks_url, allowed, self._fetching, self._clock)

    def _settings_for(self, read: Compact) -> IssuerSettings:
        """By what the token says, before it is proven: with another's settings its signature would be wrong."""
        issuer = read.claims.get("iss", "")
        settings = self._settings.get(issuer) if isinstance(issuer, str) else None
        if settings is None:
            said = f"is {issuer!r:.100}" if isinstance(issuer, str) and issuer else "is missing or no text"
            known = ", ".join(repr(each) for each in self._settings if each) or "none"
            raise TokenRefused(f"its `iss` {said}; issuers of this controller: {known}")
        if read.algorithm not in settings.allowed:
            raise TokenRefused(
                f"it is signed by {read.algorithm!r:.50}; of issuer {settings.name!r} only "
                f"{', '.join(settings.allowed)} count"
            )
        return settings

    async def _check_signed(self, read: Compact, settings: IssuerSettings) -> None:
        key = await self._keys[settings.name].find(read.kid, read.algorithm)
        try:
            self._jws.decode(read.text, key.key, algorithms=[read.algorithm])
        except PyJWTError:
            raise TokenRefused(
                f"its signature is wrong: it isn't by the key of issuer {settings.name!r} that it names, or was changed"
            ) from None

    def _remember(self, digest: bytes, principal: Principal, settings: IssuerSettings, now_us: int) -> None:
        """Signatures cost; but no longer than a token counts, and no more of them than there is room for."""
        self._known.pop(digest, None)
        if len(self._known) >= REMEMBERED_MAX:
            del self._known[next(iter(self._known))]
        left_us = (principal.expires_us or now_us) + settings.leeway_ms * 1_000 - now_us
        until_ns = self._clock.now_ns() + min(REMEMBERED_NS, left_us * _US_NS)
        self._known[digest] = _Known(principal, until_ns)


def _check_login(read: Compact, settings: IssuerSettings, expected: ExpectedId) -> None:
    """That it is of the issuer that was asked, made for this client, and for this one login."""
    if settings.name != expected.issuer:
        raise TokenRefused(f"it is of issuer {settings.name!r}, and {expected.issuer!r} was asked")
    party = read.claims.get("azp", expected.client_id)
    if party != expected.client_id:
        raise TokenRefused(f"it is for the client {party!r:.100} (its `azp`), and not for {expected.client_id!r}")
    audience = read.claims.get("aud")
    if isinstance(audience, list) and len(audience) > 1 and "azp" not in read.claims:
        raise TokenRefused("it is for several (its `aud`), and doesn't say for which client it was made (`azp`)")
    if read.claims.get("nonce") != expected.nonce:
        raise TokenRefused("its `nonce` is not that of this login: it was made for another one")
