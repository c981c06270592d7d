"""Tokens and grants of runners, as the controller's parts speak of them. Instants are int microseconds since 1970."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from cronring.controller.errors import NotFound
from cronring.schema.identity import RoleGrant


def no_such_token(name: str) -> NotFound:
    """Callers who may not see the token get the same error."""
    return NotFound(f"there is no token {name!r} that is not revoked; `cronring token list` shows them")


def no_such_grant(name: str) -> NotFound:
    """Callers who may not see the grant get the same error."""
    return NotFound(f"there is no runner grant {name!r} that is not revoked; `cronring runner-grant list` shows them")


class NewToken(NamedTuple):
    """`lasts_ms`: by PostgreSQL's clock; None: for ever."""

    name: str
    secret_hash: bytes
    grants: tuple[RoleGrant, ...]
    created_by: str
    lasts_ms: int | None


class TokenRow(NamedTuple):
    """Nothing in it is secret. `last_used_at`: to a minute or so."""

    token_id: int
    name: str
    grants: tuple[RoleGrant, ...]
    created_at: int
    created_by: str
    expires_at: int | None
    revoked_at: int | None
    revoked_by: str
    last_used_at: int | None


class TokenInUse(NamedTuple):
    """The owner of a token that a caller shows. `now`: PostgreSQL's clock."""

    name: str
    grants: tuple[RoleGrant, ...]
    expires_at: int | None
    now: int
    revoked: bool
    expired: bool


class NewRunnerGrant(NamedTuple):
    """`secret_hash` None: nobody enrolls by it. `uses` None: any number may."""

    name: str
    namespace: str
    modules: tuple[str, ...]
    may_activate: bool
    secret_hash: bytes | None
    uses: int | None
    created_by: str
    lasts_ms: int | None


class RunnerGrant(NamedTuple):
    """`modules` empty: any of the namespace. `may_enroll`: it has a join token. `expires_at`: of that."""

    grant_id: int
    name: str
    namespace: str
    modules: tuple[str, ...]
    may_activate: bool
    may_enroll: bool
    uses_left: int | None
    created_at: int
    created_by: str
    expires_at: int | None
    revoked_at: int | None
    revoked_by: str


class GrantInForce(NamedTuple):
    """`name_freed_at`: when the last former grant of this name was revoked; None: there was none.

    A certificate names its grant by the name alone. One that was issued before `name_freed_at` is of a former grant.
    """

    grant: RunnerGrant
    name_freed_at: int | None


class Listing(NamedTuple):
    """`namespaces` None: all; else only those that give no rights elsewhere. `after_id` 0: from the first one on."""

    namespaces: frozenset[str] | None
    with_revoked: bool
    after_id: int
    limit: int


class TokenStore(Protocol):
    """Each method is a statement or two. Raises StoreUnavailable and StoreError as controller.ports.store.Store."""

    async def create_token(self, new: NewToken) -> TokenRow:
        """Raises cronring.controller.errors.Conflict when the name is taken by one that is not revoked."""
        ...

    async def list_tokens(self, wanted: Listing) -> Sequence[TokenRow]: ...

    async def count_tokens(self, wanted: Listing) -> int:
        """How many list_tokens has, on all pages."""
        ...

    async def get_token(self, name: str) -> TokenRow:
        """The one that is not revoked. Raises cronring.controller.errors.NotFound."""
        ...

    async def revoke_token(self, token_id: int, by: str) -> TokenRow:
        """Effective for every call from here on. Raises NotFound if somebody else was first."""
        ...

    async def use_token(self, secret_hash: bytes) -> TokenInUse | None:
        """One statement. None: nobody's."""
        ...

    async def create_runner_grant(self, new: NewRunnerGrant) -> RunnerGrant:
        """Raises Conflict as `create_token`."""
        ...

    async def list_runner_grants(self, wanted: Listing) -> Sequence[RunnerGrant]: ...

    async def count_runner_grants(self, wanted: Listing) -> int:
        """How many list_runner_grants has, on all pages."""
        ...

    async def get_runner_grant(self, name: str) -> RunnerGrant:
        """The one that is not revoked. Raises NotFound."""
        ...

    async def revoke_runner_grant(self, grant_id: int, by: str) -> RunnerGrant:
        """Raises NotFound if somebody else was first."""
        ...

    async def runner_grant(self, name: str) -> GrantInForce | None:
        """What a certificate of that name may do; None: nothing, as it was revoked or never given."""
        ...

    async def take_join(self, secret_hash: bytes) -> RunnerGrant:
        """One runner more enrolls by it. Raises cronring.controller.ports.identity.TokenRefused, which says why not."""
        ...
