"""cronring.v1.Identities, sessions of browsers: everybody's own, and for admins those of others."""

from cronring.controller.api.paging import Pages, page_size, total
from cronring.controller.api.requests import Context, actor, row_id
from cronring.controller.api.token_box import TokenBox
from cronring.controller.ports.caller import caller
from cronring.controller.ports.web_sessions import (
    WebSessionListing,
    WebSessionRow,
    WebSessionStore,
    no_such_session,
)
from cronring.protos.cronring.v1 import identities_pb2 as pb2
from cronring.protos.instants import timestamp
from cronring.schema.identity import Permission


class WebSessionCalls:
    """The part of IdentitiesService that is about sessions."""

    def __init__(self, sessions: WebSessionStore, box: TokenBox) -> None:
        self._sessions = sessions
        self._box = box

    async def ListSessions(self, request: pb2.ListSessionsRequest, context: Context) -> pb2.ListSessionsResponse:
        pages = Pages(self._box, "ListSessions", request.with_ended)
        after, size = pages.number_cursor(request.page_token), page_size(request)
        namespaces = caller().namespaces(Permission.ADMIN)
        wanted = WebSessionListing(str(caller()), namespaces, request.with_ended, after, size + 1)
        rows = await self._sessions.list_sessions(wanted)
        page = rows[:size]
        return pb2.ListSessionsResponse(
            sessions=map(_session, page),
            next_page_token=pages.token(page[-1].session_id) if len(rows) > size else "",
            total=await total(request, lambda: self._sessions.count_sessions(wanted)),
        )

    async def RevokeSession(self, request: pb2.RevokeSessionRequest, context: Context) -> pb2.Session:
        by, session_id = actor(request.requested_by, context), row_id("id", request.id)
        row = await self._sessions.get_session(session_id)
        if row.ended or not _is_visible(row):
            raise no_such_session(session_id)
        await self._sessions.revoke_session(session_id, by)
        return _session(await self._sessions.get_session(session_id))


def _is_visible(row: WebSessionRow) -> bool:
    """As the statement ListSessions has it."""
    namespaces = caller().namespaces(Permission.ADMIN)
    if row.principal == str(caller()) or namespaces is None:
        return True
    return bool(row.grants) and all(grant.namespace in namespaces for grant in row.grants)


def _session(row: WebSessionRow) -> pb2.Session:
    return pb2.Session(
        id=row.session_id,
        principal=row.principal,
        grants=[pb2.RoleGrant(role=grant.role, namespace=grant.namespace) for grant in row.grants],
        issuer=row.issuer,
        origin=row.origin,
        created_at=timestamp(row.created_at),
        last_used_at=timestamp(row.last_used_at),
        expires_at=timestamp(row.expires_at),
        revoked_at=timestamp(row.revoked_at),
        revoked_by=row.revoked_by,
        ended=row.ended,
    )
