"""Sessions of browsers, as the controller's parts speak of them. Instants are int microseconds since 1970."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from cronring.controller.errors import NotFound
from cronring.schema.identity import Principal, RoleGrant


def no_such_session(session_id: int) -> NotFound:
    """Callers who may not see the session get the same error."""
    return NotFound(f"there is no session {session_id} that has not ended; `cronring session list` shows them")


class NewWebSession(NamedTuple):
    """A session of `principal`. `token_hash`, `token_id`: the token that it is made by; None: `issuer` named them.

    `former_hash`: of the session that it replaces; None: there was none. `others`: how many other sessions of this
    principal may stay.
    """

    secret_hash: bytes
    principal: Principal
    token_hash: bytes | None
    issuer: str
    origin: str
    former_hash: bytes | None
    others: int
    idle_ms: int
    lasts_ms: int
    token_id: int | None = None


class WebSessionRow(NamedTuple):
    """Nothing in it is secret. `last_used_at`: to a minute or so. `ended`: why; "": it lives."""

    session_id: int
    principal: str
    grants: tuple[RoleGrant, ...]
    issuer: str
    origin: str
    created_at: int
    last_used_at: int
    expires_at: int
    revoked_at: int | None
    revoked_by: str
    ended: str


class WebSessionInUse(NamedTuple):
    """The owner of a session that a browser shows. `now`: PostgreSQL's clock. `ended`: as in WebSessionRow."""

    principal: str
    grants: tuple[RoleGrant, ...]
    expires_at: int
    now: int
    ended: str


class WebSessionListing(NamedTuple):
    """The sessions of `own`, and those that give nothing outside of `namespaces` (None: all sessions)."""

    own: str
    namespaces: frozenset[str] | None
    with_ended: bool
    after_id: int
    limit: int


class WebSessionStore(Protocol):
    """Each method is a statement. Raises StoreUnavailable and StoreError as controller.ports.store.Store."""

    async def create_session(self, new: NewWebSession) -> int:
        """Its id. Raises Conflict: a session with that hash was made before."""
        ...

    async def use_session(self, secret_hash: bytes, idle_ms: int) -> WebSessionInUse | None:
        """None: there is no such session. Each use restarts its idle time."""
        ...

    async def list_sessions(self, wanted: WebSessionListing) -> Sequence[WebSessionRow]:
        """In the order of logins."""
        ...

    async def count_sessions(self, wanted: WebSessionListing) -> int:
        """How many list_sessions has, on all pages."""
        ...

    async def get_session(self, session_id: int) -> WebSessionRow:
        """Raises cronring.controller.errors.NotFound."""
        ...

    async def revoke_session(self, session_id: int, by: str) -> None:
        """Effective for every request from here on. Raises NotFound if somebody else was first."""
        ...

    async def log_out(self, secret_hash: bytes) -> None:
        """By its own browser. One that has ended stays so."""
        ...
