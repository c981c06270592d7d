"""Who calls, and whether they may. A call is judged by its metadata and method, before any of its bytes are parsed.

Its rate is limited at the same place, as the limits are for each caller.
"""

import contextlib
import hashlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from cronring.controller.api.policy import Access, Audience, Reach
from cronring.controller.api.scope import forbidden
from cronring.controller.api.shown import Shown
from cronring.controller.api.throttle import Throttle
from cronring.controller.errors import Unauthenticated
from cronring.controller.ports.identity import TokenRefused, Verifier
from cronring.schema.address import site_of
from cronring.schema.identity import EVERYWHERE, LOCAL, NOBODY, Kind, Principal

# How long a verdict is kept: else each call of a busy client would cost a statement. A revoked token works this long.
KEPT_S: Final = 1.0
KEPT_MAX: Final = 1_024  # tokens that are good; and as many that are not
# Short: our command line says itself what to give, and where from. Others read this.
TO_DO: Final = "send `authorization: Bearer TOKEN`"
_BEARER: Final = "bearer"

_NAMES: Final = "x509_subject_alternative_name"  # what TLS has proven of a certificate's holder

ByCertificate = Callable[[Audience, Shown], Awaitable[Principal]]
"""Whose certificate a call of RUNNERS or CONTROLLERS came with. Raises Unauthenticated, Forbidden."""


class Judge(Protocol):
    """Stands at the door."""

    async def judged(self, access: Access, shown: Shown) -> Principal:
        """Who calls. Raises Unauthenticated, Forbidden, Throttled; StoreUnavailable or StoreError if nobody knows."""
        ...

    async def holder(self, shown: Shown) -> Principal:
        """The owner of the bearer token that a call shows, whatever they may do. It counts as a call. As `judged`."""
        ...

    async def still(self, principal: Principal, access: Access, shown: Shown) -> None:
        """Judge a call again that goes on. Raises as `judged`, but never Throttled."""
        ...

    def streaming(self, principal: Principal, access: Access, shown: Shown) -> contextlib.AbstractContextManager[None]:
        """Around a call that may last. Entering it raises TooManyStreams."""
        ...


class Insecure:
    """A Judge for --insecure: everybody who reaches this controller may do everything, as often as they like.

    All of them count as one caller, so a limit could not protect one of them from another.
    """

    async def judged(self, access: Access, shown: Shown) -> Principal:
        return LOCAL

    async def holder(self, shown: Shown) -> Principal:
        return LOCAL

    async def still(self, principal: Principal, access: Access, shown: Shown) -> None:
        """Always."""

    def streaming(self, principal: Principal, access: Access, shown: Shown) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()


class Verdicts:
    """Verdicts on secrets by the first verifier that knows their kind, kept for KEPT_S. `to_do`: ends a refusal."""

    def __init__(
        self,
        verifiers: Sequence[Verifier],
        throttle: Throttle,
        now_s: Callable[[], float] = time.monotonic,
        to_do: str = TO_DO,
    ) -> None:
        self._verifiers = verifiers
        self._throttle = throttle
        self._now_s = now_s
        self._to_do = to_do
        # Two caches, so that a flood of wrong secrets doesn't drive out the good ones.
        self._good: OrderedDict[bytes, _Verdict] = OrderedDict()
        self._wrong: OrderedDict[bytes, _Verdict] = OrderedDict()

    async def holder(self, secret: str, host: str | None) -> Principal:
        """`host`: a wrong secret counts as a stranger's call from it; None: the call was counted before.

        Raises Unauthenticated, Throttled; StoreUnavailable, StoreError, IssuerAway where that can't be told now.
        """
        verdict = await self._verdict(secret, host)
        if verdict.principal is None:
            raise Unauthenticated(f"{verdict.why}; {self._to_do}", verdict.whose)
        if host is not None:
            self._throttle.call(str(verdict.principal))
        return verdict.principal

    async def _verdict(self, secret: str, host: str | None) -> "_Verdict":
        # Kept by its hash, so that this process keeps no secrets.
        name, now_s = hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest(), self._now_s()
        good, wrong = self._good.get(name), self._wrong.get(name)
        if good is not None and now_s < good.until_s:
            return good
        if wrong is not None and now_s < wrong.until_s:
            if host is not None:
                self._throttle.stranger(host)
            return wrong
        if host is not None and good is None:
            self._throttle.lookup(host)
        found = await self._asked(secret, now_s + KEPT_S)
        if host is not None and good is None and found.principal is not None:
            self._throttle.found(host)
        self._keep(name, found)
        return found

    def _keep(self, name: bytes, found: "_Verdict") -> None:
        kept, other = (self._wrong, self._good) if found.principal is None else (self._good, self._wrong)
        other.pop(name, None)
        kept[name] = found
        kept.move_to_end(name)
        if len(kept) > KEPT_MAX:
            kept.popitem(last=False)

    async def _asked(self, secret: str, until_s: float) -> "_Verdict":
        """Raises StoreUnavailable, StoreError, IssuerAway."""
        for verifier in self._verifiers:
            if verifier.knows(secret):
                try:
                    return _Verdict(until_s, await verifier.principal(secret))
                except TokenRefused as error:
                    return _Verdict(until_s, why=str(error), whose=error.principal)
        return _Verdict(until_s, why="this token is of no kind that this controller knows")


class Known:
    """A Judge of bearer tokens, by the first verifier that knows a token's kind; and of certificates."""

    def __init__(
        self,
        verifiers: Sequence[Verifier],
        by_certificate: ByCertificate,
        throttle: Throttle,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._verdicts = Verdicts(verifiers, throttle, now_s)
        self._by_certificate = by_certificate
        self._throttle = throttle

    async def judged(self, access: Access, shown: Shown) -> Principal:
        match access.audience:
            case Audience.ANYONE | Audience.ENROLLING:
                self._throttle.stranger(site_of(shown.peer()), access.audience)
                return NOBODY
            case Audience.RUNNERS | Audience.GRANTED:
                self._throttle.member(b" ".join(shown.auth_context().get(_NAMES, ())), site_of(shown.peer()))
                return await self._by_certificate(access.audience, shown)
            case Audience.CONTROLLERS:
                # Not limited: delayed gossip would declare live members dead, and it costs no statement.
                return await self._by_certificate(access.audience, shown)
            case Audience.PEOPLE | Audience.METADATA:
                principal = await self.holder(shown)
                check(principal, access)
                return principal

    async def still(self, principal: Principal, access: Access, shown: Shown) -> None:
        try:
            now = await self._now(access, shown)
        except Unauthenticated as error:
            raise Unauthenticated(f"what was shown when this call began is no longer good: {error}") from None
        check_still(now, principal, access)

    async def _now(self, access: Access, shown: Shown) -> Principal:
        """As `judged`, of a call that was counted when it began."""
        if access.audience not in {Audience.PEOPLE, Audience.METADATA}:
            return await self._by_certificate(access.audience, shown)
        return await self._verdicts.holder(_bearer(shown.invocation_metadata() or ()), None)

    def streaming(self, principal: Principal, access: Access, shown: Shown) -> contextlib.AbstractContextManager[None]:
        who, host = str(principal), site_of(shown.peer())
        if access.audience in {Audience.ANYONE, Audience.ENROLLING}:
            return self._throttle.stream((access.audience, host), host, of_member=False)
        if principal.kind in {Kind.RUNNER, Kind.CONTROLLER}:
            return self._throttle.stream((who, host), f"{who} at {host}", of_member=True)
        return self._throttle.stream(who, who, of_member=False)

    async def holder(self, shown: Shown) -> Principal:
        host = site_of(shown.peer())
        try:
            token = _bearer(shown.invocation_metadata() or ())
        except Unauthenticated:
            self._throttle.stranger(host)
            raise
        return await self._verdicts.holder(token, host)


class _Verdict(NamedTuple):
    """What was said of a token. `principal` None: it was refused. `whose`: then, whose it was, if that is known."""

    until_s: float
    principal: Principal | None = None
    why: str = ""
    whose: Principal | None = None


def check(principal: Principal, access: Access) -> None:
    """Raises Forbidden if the principal lacks what the method takes."""
    if access.permission is None:
        return
    if access.scope is Reach.CLUSTER and not principal.may(access.permission, EVERYWHERE):
        raise forbidden(principal, access.permission, EVERYWHERE)
    if principal.namespaces(access.permission) == frozenset():
        raise forbidden(principal, access.permission, "")


def check_still(now: Principal, then: Principal, access: Access) -> None:
    """Raises Forbidden or Unauthenticated if the caller is not the one who was let in, or has other rights `now`."""
    check(now, access)
    if (now.kind, now.name, now.grants) != (then.kind, then.name, then.grants):
        raise Unauthenticated("what the caller may do has changed; call again")


def _bearer(metadata: Iterable[tuple[str, str | bytes]]) -> str:
    """Raises Unauthenticated."""
    given = [value for key, value in metadata if key == "authorization"]
    if not given:
        raise Unauthenticated(f"this call has no token; {TO_DO}")
    scheme, _, token = str(given[0]).partition(" ")
    if len(given) > 1 or scheme.lower() != _BEARER or not token.strip():
        raise Unauthenticated(f"the authorization of this call is no bearer token; {TO_DO}")
    return token.strip()
