"""Bearer tokens that `cronring token create` made: whose they are."""

from collections.abc import Callable

from cronring.controller.ports.identity import TokenRefused
from cronring.controller.ports.tokens import TokenStore
from cronring.controller.services.vouching import Vouched, Vouching
from cronring.schema.identity import Kind, Principal
from cronring.schema.tokens import SecretKind, is_of_kind, secret_fault, secret_hash


class TokenVerifier:
    """cronring.controller.ports.identity.Verifier. `now_ns`: a monotonic clock."""

    def __init__(self, tokens: TokenStore, now_ns: Callable[[], int]) -> None:
        self._tokens = tokens
        self._vouching = Vouching(self._asked, now_ns)

    def knows(self, token: str) -> bool:
        """By how it begins: one that is mistyped is ours to refuse."""
        return is_of_kind(SecretKind.TOKEN, token)

    async def principal(self, token: str) -> Principal:
        """One statement. Raises TokenRefused; StoreUnavailable when that can't be told now."""
        if fault := secret_fault(SecretKind.TOKEN, token):
            raise TokenRefused(f"this is no token of cronring: {fault}")
        return await self._vouching.principal(secret_hash(SecretKind.TOKEN, token))

    async def _asked(self, digest: bytes) -> Vouched:
        found = await self._tokens.use_token(digest)
        if found is None:
            raise TokenRefused("this token is not known here: it is of another cluster, or was revoked long ago")
        if found.revoked or found.expired:
            why = f"the token {found.name!r} {'was revoked' if found.revoked else 'has expired'}"
            raise TokenRefused(why, Principal(Kind.TOKEN, found.name))
        return Vouched(Principal(Kind.TOKEN, found.name, found.grants, found.expires_at), found.now)
