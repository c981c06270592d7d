"""Tokens and runner grants in PostgreSQL, which only gets hashes of their secrets."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

import asyncpg

from cronring.controller.errors import Conflict, NotFound
from cronring.controller.ports.caller import known_as
from cronring.controller.ports.identity import TokenRefused
from cronring.controller.ports.tokens import (
    GrantInForce,
    Listing,
    NewRunnerGrant,
    NewToken,
    RunnerGrant,
    TokenInUse,
    TokenRow,
    no_such_grant,
    no_such_token,
)
from cronring.controller.services.audit_changes import of_enrolling, of_runner_grant, of_token
from cronring.controller.store.pool import Database
from cronring.controller.store.recording import record
from cronring.schema.identity import Kind, Principal, Role, RoleGrant
from cronring.sql.parameters import (
    CountRunnerGrants,
    CountTokens,
    CreateRunnerGrant,
    CreateToken,
    GetJoin,
    GetRunnerGrant,
    GetToken,
    ListRunnerGrants,
    ListTokens,
    RevokeRunnerGrant,
    RevokeToken,
    TakeJoin,
    UseToken,
)

_ROLES: Final = frozenset(Role)


class PostgresTokens:
    """cronring.controller.ports.tokens.TokenStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create_token(self, new: NewToken) -> TokenRow:
        """Raises Conflict."""
        creating = CreateToken(
            name=new.name,
            secret_hash=new.secret_hash,
            grants=json.dumps([grant._asdict() for grant in new.grants]),
            actor=new.created_by,
            lasts_ms=new.lasts_ms,
        )
        async with self._database.transaction("creating a token") as transaction:
            made = await transaction.fetch(creating)
            if not made:
                raise Conflict(
                    f"there is a token {new.name!r} already; take another name, or revoke that one: "
                    f"cronring token revoke {new.name}"
                )
            row = _token(made[0])
            await record(transaction, of_token(row, revoked=False))
            return row

    async def list_tokens(self, wanted: Listing) -> Sequence[TokenRow]:
        """In the order in which they were made."""
        return [_token(record) for record in await self._database.fetch(ListTokens(**_where(wanted)))]

    async def count_tokens(self, wanted: Listing) -> int:
        ((count,),) = await self._database.fetch(CountTokens(**_which(wanted)))
        return int(count)

    async def get_token(self, name: str) -> TokenRow:
        """Raises NotFound."""
        return _token(_one(await self._database.fetch(GetToken(name=name)), no_such_token(name)))

    async def revoke_token(self, token_id: int, by: str) -> TokenRow:
        """Raises NotFound."""
        async with self._database.transaction("revoking a token") as transaction:
            changed = await transaction.fetch(RevokeToken(token_id=token_id, actor=by))
            row = _token(_one(changed, no_such_token("that you named")))
            await record(transaction, of_token(row, revoked=True))
            return row

    async def use_token(self, secret_hash: bytes) -> TokenInUse | None:
        """None: nobody's."""
        records = await self._database.fetch(UseToken(secret_hash=secret_hash))
        return TokenInUse._make(records[0])._replace(grants=grants_of(records[0])) if records else None

    async def create_runner_grant(self, new: NewRunnerGrant) -> RunnerGrant:
        """Raises Conflict."""
        creating = CreateRunnerGrant(
            name=new.name,
            namespace=new.namespace,
            modules=new.modules,
            may_activate=new.may_activate,
            secret_hash=new.secret_hash,
            uses=new.uses,
            actor=new.created_by,
            lasts_ms=new.lasts_ms,
        )
        async with self._database.transaction("creating a runner grant") as transaction:
            made = await transaction.fetch(creating)
            if not made:
                raise Conflict(
                    f"there is a runner grant {new.name!r} already; take another name, or revoke that one: "
                    f"cronring runner-grant revoke {new.name}"
                )
            row = _runner_grant(made[0])
            await record(transaction, of_runner_grant(row, revoked=False))
            return row

    async def list_runner_grants(self, wanted: Listing) -> Sequence[RunnerGrant]:
        """In the order in which they were made."""
        return [_runner_grant(record) for record in await self._database.fetch(ListRunnerGrants(**_where(wanted)))]

    async def count_runner_grants(self, wanted: Listing) -> int:
        ((count,),) = await self._database.fetch(CountRunnerGrants(**_which(wanted)))
        return int(count)

    async def get_runner_grant(self, name: str) -> RunnerGrant:
        """Raises NotFound."""
        found = await self.runner_grant(name)
        if found is None:
            raise no_such_grant(name)
        return found.grant

    async def revoke_runner_grant(self, grant_id: int, by: str) -> RunnerGrant:
        """Raises NotFound."""
        async with self._database.transaction("revoking a runner grant") as transaction:
            changed = await transaction.fetch(RevokeRunnerGrant(grant_id=grant_id, actor=by))
            row = _runner_grant(_one(changed, no_such_grant("that you named")))
            await record(transaction, of_runner_grant(row, revoked=True))
            return row

    async def runner_grant(self, name: str) -> GrantInForce | None:
        """None: it was revoked, or never given."""
        records = await self._database.fetch(GetRunnerGrant(name=name))
        if not records:
            return None
        *grant, name_freed_at = records[0]
        return GrantInForce(_runner_grant(grant), name_freed_at)

    async def take_join(self, secret_hash: bytes) -> RunnerGrant:
        """Raises TokenRefused."""
        async with self._database.transaction("enrolling a runner") as transaction:
            taken = await transaction.fetch(TakeJoin(secret_hash=secret_hash))
            if not taken:
                raise TokenRefused(_why_no_join(await transaction.fetch(GetJoin(secret_hash=secret_hash))))
            row = _runner_grant(taken[0])
            with known_as(Principal(Kind.JOIN, row.name)):
                await record(transaction, of_enrolling(row))
            return row


def _why_no_join(records: Sequence[asyncpg.Record]) -> str:
    if not records:
        return "this join token is not known here: it is of another cluster, or was forgotten since it was revoked"
    name, revoked, expired = records[0]
    why = "was revoked" if revoked else "has expired" if expired else "was used as often as it may be"
    return f"the join token of the runner grant {name!r} {why}; make a new one: cronring runner-grant create"


def _where(wanted: Listing) -> dict[str, Any]:
    return _which(wanted) | {"after_id": wanted.after_id, "limit": wanted.limit}


def _which(wanted: Listing) -> dict[str, Any]:
    """The filter, without the position of a page."""
    namespaces = None if wanted.namespaces is None else sorted(wanted.namespaces)
    return {"namespaces": namespaces, "with_revoked": wanted.with_revoked}


def _one(records: Sequence[asyncpg.Record], otherwise: NotFound) -> asyncpg.Record:
    if not records:
        raise otherwise
    return records[0]


def _token(record: asyncpg.Record) -> TokenRow:
    return TokenRow._make(record)._replace(grants=grants_of(record))


def grants_of(record: asyncpg.Record) -> tuple[RoleGrant, ...]:
    """The row's grants, without roles that only a later release knows."""
    found = json.loads(record["grants"])
    return tuple(RoleGrant(Role(each["role"]), each["namespace"]) for each in found if each["role"] in _ROLES)


def _runner_grant(record: Iterable[Any]) -> RunnerGrant:
    row = RunnerGrant._make(record)
    return row._replace(modules=tuple(row.modules))
