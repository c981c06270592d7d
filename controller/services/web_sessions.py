"""Sessions of browsers: made at a login, and whose a cookie is."""

import secrets
from collections.abc import Callable
from typing import Final, NamedTuple

from cronring.controller.ports.identity import TokenRefused
from cronring.controller.ports.web_sessions import NewWebSession, WebSessionStore
from cronring.controller.services.vouching import Vouched, Vouching
from cronring.schema.identity import Kind, Principal
from cronring.schema.tokens import (
    SECRET_BYTES,
    SecretKind,
    hash_of,
    is_of_kind,
    make_secret_text,
    secret_fault,
    secret_hash,
)

# A working day. An issuer is asked only at the login, so somebody whom it locks out stays logged in for this long.
LASTS_MS: Final = 12 * 3_600_000
IDLE_MS: Final = 2 * 3_600_000  # without a request; an open console makes one each minute
SESSIONS_MAX: Final = 10  # of one principal; one more ends the oldest
_WHY: Final = {
    "revoked": "somebody ended it, or you logged out",
    "token_revoked": "the token that you logged in by was revoked",
    "expired": "its time is up",
}


class MadeBy(NamedTuple):
    """What a session is made by: a token, or the issuer of that name.

    `random`: the bytes that its cookie is made of, if a login link decides them. None: drawn at random.
    """

    token_hash: bytes | None = None
    token_id: int | None = None
    issuer: str = ""
    random: bytes | None = None


class WebSessionVerifier:
    """cronring.controller.ports.identity.Verifier of cookies. `now_ns`: a monotonic clock."""

    def __init__(self, sessions: WebSessionStore, now_ns: Callable[[], int]) -> None:
        self._sessions = sessions
        self._vouching = Vouching(self._asked, now_ns)

    def knows(self, token: str) -> bool:
        return is_of_kind(SecretKind.SESSION, token)

    async def principal(self, token: str) -> Principal:
        """One statement. Raises TokenRefused; StoreUnavailable when that can't be told now."""
        if fault := secret_fault(SecretKind.SESSION, token):
            raise TokenRefused(f"this is no session of cronring: {fault}")
        return await self._vouching.principal(secret_hash(SecretKind.SESSION, token))

    async def _asked(self, digest: bytes) -> Vouched:
        found = await self._sessions.use_session(digest, IDLE_MS)
        if found is None:
            raise TokenRefused("this session is not known: it was replaced by a later login, or has ended long ago")
        if found.ended:
            raise TokenRefused(f"this session has ended: {_WHY[found.ended]}")
        kind, _, name = found.principal.partition(":")
        return Vouched(Principal(Kind(kind), name, found.grants, found.expires_at), found.now)


async def make_session(
    store: WebSessionStore, principal: Principal, made_by: MadeBy, origin: str, former: str | None
) -> str:
    """Make a session, and return its cookie: always a new one. `former`: the browser's cookie so far, if any.

    Raises Conflict if a session with that `random` was made before.
    """
    random = made_by.random or secrets.token_bytes(SECRET_BYTES)
    await store.create_session(
        NewWebSession(
            secret_hash=hash_of(random),
            principal=principal,
            token_hash=made_by.token_hash,
            token_id=made_by.token_id,
            issuer=made_by.issuer,
            origin=origin,
            former_hash=_hash_or_none(former),
            others=SESSIONS_MAX - 1,
            idle_ms=IDLE_MS,
            lasts_ms=LASTS_MS,
        )
    )
    return make_secret_text(SecretKind.SESSION, random)


async def end_session(store: WebSessionStore, cookie: str) -> None:
    """A browser logs out. A cookie without a session is ignored."""
    if (digest := _hash_or_none(cookie)) is not None:
        await store.log_out(digest)


def _hash_or_none(cookie: str | None) -> bytes | None:
    if cookie is None or secret_fault(SecretKind.SESSION, cookie):
        return None
    return secret_hash(SecretKind.SESSION, cookie)
