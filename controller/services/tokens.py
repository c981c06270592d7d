"""Bearer tokens that `cronring token create` made: whose they are."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple

from cronring.controller.errors import StoreUnavailable
from cronring.controller.ports.identity import TokenRefused
from cronring.controller.ports.tokens import TokenInUse, TokenStore
from cronring.schema.identity import Kind, Principal
from cronring.schema.tokens import SecretKind, is_of_kind, secret_fault, secret_hash

# While PostgreSQL is away nobody could ask why: `doctor` needs a token, too. So what PostgreSQL has vouched for so
# lately is believed then. While it is there, the door asks anew each second (docs/decisions/0069).
REMEMBERED_S: Final = 60
REMEMBERED_MAX: Final = 1_024
AWAY_S: Final = 1.0  # an answer that takes longer is none: whoever asks `doctor` waits for 3 s
_NS: Final = 1_000_000_000


class _Remembered(NamedTuple):
    principal: Principal
    until_ns: int


class TokenVerifier:
    """cronring.controller.ports.identity.Verifier. `now_ns`: a monotonic clock."""

    def __init__(self, tokens: TokenStore, now_ns: Callable[[], int]) -> None:
        self._tokens = tokens
        self._now_ns = now_ns
        self._remembered: OrderedDict[bytes, _Remembered] = OrderedDict()  # by hash; the oldest first

    def knows(self, token: str) -> bool:
        """By how it begins: one that is mistyped is ours to refuse."""
        return is_of_kind(SecretKind.TOKEN, token)

    async def principal(self, token: str) -> Principal:
        """One statement. Raises TokenRefused; StoreUnavailable when that can't be told now."""
        if fault := secret_fault(SecretKind.TOKEN, token):
            raise TokenRefused(f"this is no token of cronring: {fault}")
        digest = secret_hash(SecretKind.TOKEN, token)
        known = self._known(digest)
        try:
            async with asyncio.timeout(AWAY_S if known else None):
                found = await self._tokens.use_token(digest)
        except (StoreUnavailable, TimeoutError):
            if known is None:
                raise
            return known
        self._remembered.pop(digest, None)
        if found is None:
            raise TokenRefused("this token is not known here: it is of another cluster, or was revoked long ago")
        if found.revoked or found.expired:
            why = f"the token {found.name!r} {'was revoked' if found.revoked else 'has expired'}"
            raise TokenRefused(why, Principal(Kind.TOKEN, found.name))
        principal = Principal(Kind.TOKEN, found.name, found.grants, found.expires_at)
        self._remember(digest, principal, found)
        return principal

    def _known(self, digest: bytes) -> Principal | None:
        found = self._remembered.get(digest)
        return found.principal if found is not None and self._now_ns() < found.until_ns else None

    def _remember(self, digest: bytes, principal: Principal, found: TokenInUse) -> None:
        left_ns = REMEMBERED_S * _NS
        if found.expires_at is not None:
            left_ns = min(left_ns, (found.expires_at - found.now) * 1_000)
        self._remembered[digest] = _Remembered(principal, self._now_ns() + left_ns)
        if len(self._remembered) > REMEMBERED_MAX:
            self._remembered.popitem(last=False)
