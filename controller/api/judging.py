"""Who calls, and whether they may: judged by a call's metadata and its method, before any of its bytes is parsed."""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from cronring.controller.api.policy import Access, Audience, Reach
from cronring.controller.api.requests import Context
from cronring.controller.api.scope import forbidden
from cronring.controller.errors import Unauthenticated
from cronring.controller.ports.identity import TokenRefused, Verifier
from cronring.schema.identity import EVERYWHERE, LOCAL, NOBODY, Principal

# Without it each call of a busy client would be one statement more. For so long a revoked token is still good.
KEPT_S: Final = 1.0
KEPT_MAX: Final = 1_024  # tokens
# Short: our command line says itself what to give, and where from. Others read this.
TO_DO: Final = "send `authorization: Bearer TOKEN`"
_BEARER: Final = "bearer"

ByCertificate = Callable[[Audience, Context], Awaitable[Principal]]
"""Whose certificate a call of RUNNERS or CONTROLLERS came with. Raises Unauthenticated, Forbidden."""


class Judge(Protocol):
    """Stands at the door."""

    async def judged(self, access: Access, context: Context) -> Principal:
        """Who calls. Raises Unauthenticated, Forbidden; StoreUnavailable, StoreError where that can't be told now."""
        ...

    async def still(self, principal: Principal, access: Access, context: Context) -> None:
        """Whether what was judged of a call that goes on is true yet. Raises as `judged`."""
        ...


class Insecure:
    """A Judge for --insecure: whoever reaches this controller may do everything."""

    async def judged(self, access: Access, context: Context) -> Principal:
        return LOCAL

    async def still(self, principal: Principal, access: Access, context: Context) -> None:
        """Always."""


class Known:
    """A Judge of bearer tokens, by the first verifier that knows a token's kind; and of certificates."""

    def __init__(
        self, verifiers: Sequence[Verifier], by_certificate: ByCertificate, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._verifiers = verifiers
        self._by_certificate = by_certificate
        self._now_s = now_s
        self._kept: OrderedDict[bytes, _Verdict] = OrderedDict()

    async def judged(self, access: Access, context: Context) -> Principal:
        match access.audience:
            case Audience.ANYONE:
                return NOBODY
            case Audience.RUNNERS | Audience.GRANTED | Audience.CONTROLLERS:
                return await self._by_certificate(access.audience, context)
            case Audience.PEOPLE | Audience.METADATA:
                principal = await self._holder(_bearer(context.invocation_metadata() or ()))
                _check(principal, access)
                return principal

    async def still(self, principal: Principal, access: Access, context: Context) -> None:
        try:
            now = await self.judged(access, context)
        except Unauthenticated as error:
            raise Unauthenticated(f"what was shown when this call began is no longer good: {error}") from None
        if (now.kind, now.name, now.grants) != (principal.kind, principal.name, principal.grants):
            raise Unauthenticated("what the caller may do has changed; call again")

    async def _holder(self, token: str) -> Principal:
        # By its hash, so that no token lies about in this process.
        name, now_s = hashlib.sha256(token.encode()).digest(), self._now_s()
        kept = self._kept.get(name)
        if kept is None or now_s >= kept.until_s:
            kept = await self._asked(token, now_s + KEPT_S)
            self._kept[name] = kept
            self._kept.move_to_end(name)
            if len(self._kept) > KEPT_MAX:
                self._kept.popitem(last=False)
        if kept.principal is None:
            raise Unauthenticated(f"{kept.why}; {TO_DO}", kept.whose)
        return kept.principal

    async def _asked(self, token: str, until_s: float) -> "_Verdict":
        """Raises StoreUnavailable, StoreError."""
        for verifier in self._verifiers:
            if verifier.knows(token):
                try:
                    return _Verdict(until_s, await verifier.principal(token))
                except TokenRefused as error:
                    return _Verdict(until_s, why=str(error), whose=error.principal)
        return _Verdict(until_s, why="this token is of no kind that this controller knows")


class _Verdict(NamedTuple):
    """What was said of a token. `principal` None: it was refused. `whose`: then, whose it was, if that is known."""

    until_s: float
    principal: Principal | None = None
    why: str = ""
    whose: Principal | None = None


def _check(principal: Principal, access: Access) -> None:
    """Raises Forbidden."""
    if access.permission is None:
        return
    if access.scope is Reach.CLUSTER and not principal.may(access.permission, EVERYWHERE):
        raise forbidden(principal, access.permission, EVERYWHERE)
    if principal.namespaces(access.permission) == frozenset():
        raise forbidden(principal, access.permission, "")


def _bearer(metadata: Iterable[tuple[str, str | bytes]]) -> str:
    """Raises Unauthenticated."""
    given = [value for key, value in metadata if key == "authorization"]
    if not given:
        raise Unauthenticated(f"this call has no token; {TO_DO}")
    scheme, _, token = str(given[0]).partition(" ")
    if len(given) > 1 or scheme.lower() != _BEARER or not token.strip():
        raise Unauthenticated(f"the authorization of this call is no bearer token; {TO_DO}")
    return token.strip()
