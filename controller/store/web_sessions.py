"""Sessions of browsers in PostgreSQL, which only gets hashes of cookies."""

import json
from collections.abc import Sequence

from cronring.controller.errors import Conflict
from cronring.controller.ports.web_sessions import (
    NewWebSession,
    WebSessionInUse,
    WebSessionListing,
    WebSessionRow,
    no_such_session,
)
from cronring.controller.services.audit_changes import of_session
from cronring.controller.store.pool import Database
from cronring.controller.store.recording import record
from cronring.controller.store.tokens import grants_of
from cronring.sql.parameters import (
    CountSessions,
    CreateSession,
    GetSession,
    ListSessions,
    RevokeSession,
    RevokeSessionOf,
    UseSession,
)


class PostgresWebSessions:
    """cronring.controller.ports.web_sessions.WebSessionStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create_session(self, new: NewWebSession) -> int:
        """Its id. Raises Conflict: a session with that hash was made before."""
        by_token = new.token_hash is not None or new.token_id is not None
        grants = None if by_token else json.dumps([grant._asdict() for grant in new.principal.grants])
        creating = CreateSession(
            former_hash=new.former_hash,
            principal=str(new.principal),
            others=new.others,
            secret_hash=new.secret_hash,
            token_hash=new.token_hash,
            token_id=new.token_id,
            grants=grants,
            issuer=new.issuer,
            origin=new.origin,
            idle_ms=new.idle_ms,
            lasts_ms=new.lasts_ms,
        )
        async with self._database.transaction("logging in") as transaction:
            made = await transaction.fetch(creating)
            if not made:
                raise Conflict("this session was made before")
            session_id: int = made[0]["id"]
            begun = of_session(session_id, {"principal": str(new.principal), "issuer": new.issuer}, ended=False)
            await record(transaction, begun, by=str(new.principal))
        return session_id

    async def use_session(self, secret_hash: bytes, idle_ms: int) -> WebSessionInUse | None:
        """None: nobody's."""
        records = await self._database.fetch(UseSession(idle_ms=idle_ms, secret_hash=secret_hash))
        return WebSessionInUse._make(records[0])._replace(grants=grants_of(records[0])) if records else None

    async def list_sessions(self, wanted: WebSessionListing) -> Sequence[WebSessionRow]:
        """In the order of logins."""
        namespaces = None if wanted.namespaces is None else sorted(wanted.namespaces)
        records = await self._database.fetch(ListSessions(**wanted._asdict() | {"namespaces": namespaces}))
        return [WebSessionRow._make(record)._replace(grants=grants_of(record)) for record in records]

    async def count_sessions(self, wanted: WebSessionListing) -> int:
        namespaces = None if wanted.namespaces is None else sorted(wanted.namespaces)
        ((count,),) = await self._database.fetch(
            CountSessions(own=wanted.own, namespaces=namespaces, with_ended=wanted.with_ended)
        )
        return int(count)

    async def get_session(self, session_id: int) -> WebSessionRow:
        """Raises NotFound."""
        records = await self._database.fetch(GetSession(session_id=session_id))
        if not records:
            raise no_such_session(session_id)
        return WebSessionRow._make(records[0])._replace(grants=grants_of(records[0]))

    async def revoke_session(self, session_id: int, by: str) -> None:
        """Raises NotFound."""
        async with self._database.transaction("ending a session") as transaction:
            ended = await transaction.fetch(RevokeSession(session_id=session_id, actor=by))
            if not ended:
                raise no_such_session(session_id)
            await record(transaction, of_session(session_id, {"principal": ended[0]["principal"]}, ended=True))

    async def log_out(self, secret_hash: bytes) -> None:
        """A session that has ended stays ended."""
        async with self._database.transaction("logging out") as transaction:
            ended = await transaction.fetch(RevokeSessionOf(secret_hash=secret_hash))
            transaction.unchanged = not ended
            for session_id, principal in ended:
                await record(transaction, of_session(session_id, {"principal": principal}, ended=True), by=principal)
