"""cronring.v1.Identities: tokens, grants of runners, and who the caller is; sessions are in web_session_calls.py."""

from collections.abc import Iterable, Sequence

from google.protobuf.message import Message

from cronring.controller.api.paging import Pages, page_size, total
from cronring.controller.api.problems import InvalidRequest
from cronring.controller.api.requests import Context, actor, required
from cronring.controller.api.token_box import TokenBox
from cronring.controller.api.web_session_calls import WebSessionCalls
from cronring.controller.errors import Forbidden
from cronring.controller.ports.caller import caller
from cronring.controller.ports.tokens import Listing, RunnerGrant, TokenRow, TokenStore, no_such_grant, no_such_token
from cronring.controller.ports.web_sessions import WebSessionStore
from cronring.controller.services.identities import (
    WantedRunnerGrant,
    WantedToken,
    make_runner_grant,
    make_token,
    runner_grant_faults,
    token_faults,
)
from cronring.protos.cronring.v1 import identities_pb2 as pb2
from cronring.protos.cronring.v1 import identities_pb2_grpc
from cronring.protos.instants import timestamp
from cronring.schema.identity import EVERYWHERE, Permission, RoleGrant
from cronring.schema.keys import DEFAULT_NAMESPACE


class IdentitiesService(WebSessionCalls, identities_pb2_grpc.IdentitiesServicer):
    """The door has judged who calls. This checks that they are admin in the namespaces concerned."""

    def __init__(self, tokens: TokenStore, sessions: WebSessionStore, box: TokenBox) -> None:
        super().__init__(sessions, box)
        self._tokens = tokens

    async def CreateToken(self, request: pb2.CreateTokenRequest, context: Context) -> pb2.CreateTokenResponse:
        wanted = WantedToken(
            request.name,
            tuple((each.role, each.namespace or DEFAULT_NAMESPACE) for each in request.grants),
            request.lasts_ms if request.HasField("lasts_ms") else None,
            actor(request.requested_by, context),
        )
        if faults := token_faults(wanted):
            raise InvalidRequest(faults)
        _check_admin(namespace for _, namespace in wanted.grants)
        row, secret = await make_token(self._tokens, wanted)
        return pb2.CreateTokenResponse(token=_token(row), secret=secret)

    async def ListTokens(self, request: pb2.ListTokensRequest, context: Context) -> pb2.ListTokensResponse:
        pages, wanted = self._listing("ListTokens", request, request.page_token, with_revoked=request.with_revoked)
        rows = await self._tokens.list_tokens(wanted)
        page = rows[: wanted.limit - 1]
        return pb2.ListTokensResponse(
            tokens=map(_token, page),
            next_page_token=pages.token(page[-1].token_id) if len(rows) > len(page) else "",
            total=await total(request, lambda: self._tokens.count_tokens(wanted)),
        )

    async def RevokeToken(self, request: pb2.RevokeTokenRequest, context: Context) -> pb2.Token:
        by = actor(request.requested_by, context)
        row = await self._tokens.get_token(required("name", request.name, "a token's name"))
        if not _is_admin(grant.namespace for grant in row.grants):
            raise no_such_token(row.name)
        return _token(await self._tokens.revoke_token(row.token_id, by))

    async def CreateRunnerGrant(
        self, request: pb2.CreateRunnerGrantRequest, context: Context
    ) -> pb2.CreateRunnerGrantResponse:
        wanted = WantedRunnerGrant(
            request.name,
            request.namespace or DEFAULT_NAMESPACE,
            tuple(request.modules),
            request.may_activate,
            request.certificate_only,
            request.uses if request.HasField("uses") else None,
            request.lasts_ms if request.HasField("lasts_ms") else None,
            actor(request.requested_by, context),
        )
        if faults := runner_grant_faults(wanted):
            raise InvalidRequest(faults)
        _check_admin([wanted.namespace])
        row, secret = await make_runner_grant(self._tokens, wanted)
        return pb2.CreateRunnerGrantResponse(grant=_runner_grant(row), secret=secret)

    async def ListRunnerGrants(
        self, request: pb2.ListRunnerGrantsRequest, context: Context
    ) -> pb2.ListRunnerGrantsResponse:
        pages, wanted = self._listing(
            "ListRunnerGrants", request, request.page_token, with_revoked=request.with_revoked
        )
        rows = await self._tokens.list_runner_grants(wanted)
        page = rows[: wanted.limit - 1]
        return pb2.ListRunnerGrantsResponse(
            runner_grants=map(_runner_grant, page),
            next_page_token=pages.token(page[-1].grant_id) if len(rows) > len(page) else "",
            total=await total(request, lambda: self._tokens.count_runner_grants(wanted)),
        )

    async def RevokeRunnerGrant(self, request: pb2.RevokeRunnerGrantRequest, context: Context) -> pb2.RunnerGrant:
        by = actor(request.requested_by, context)
        row = await self._tokens.get_runner_grant(required("name", request.name, "a runner grant's name"))
        if not _is_admin([row.namespace]):
            raise no_such_grant(row.name)
        return _runner_grant(await self._tokens.revoke_runner_grant(row.grant_id, by))

    async def WhoAmI(self, request: pb2.WhoAmIRequest, context: Context) -> pb2.WhoAmIResponse:
        me = caller()
        return pb2.WhoAmIResponse(
            kind=me.kind, name=me.name, grants=_grants(me.grants), expires_at=timestamp(me.expires_us)
        )

    def _listing(self, method: str, request: Message, page_token: str, *, with_revoked: bool) -> tuple[Pages, Listing]:
        """One more than the page has, which says whether there is another. Raises InvalidRequest, Forbidden."""
        namespaces = caller().namespaces(Permission.ADMIN)
        if namespaces is not None and not namespaces:
            raise Forbidden(f"{caller()} is admin of no namespace; only admins see who else may do what")
        pages = Pages(self._box, method, with_revoked)
        return pages, Listing(namespaces, with_revoked, pages.number_cursor(page_token), page_size(request) + 1)


def _is_admin(namespaces: Iterable[str]) -> bool:
    """Whether the caller is admin of all of these. Others don't see what lies there."""
    return all(caller().may(Permission.ADMIN, namespace) for namespace in namespaces)


def _check_admin(namespaces: Iterable[str]) -> None:
    """Raises Forbidden: nobody may give rights that they don't have themselves."""
    for namespace in namespaces:
        if not _is_admin([namespace]):
            where = "all namespaces" if namespace == EVERYWHERE else f"the namespace {namespace}"
            raise Forbidden(f"{caller()} is no admin of {where}, and can give no rights there")


def _token(row: TokenRow) -> pb2.Token:
    return pb2.Token(
        name=row.name,
        grants=_grants(row.grants),
        created_at=timestamp(row.created_at),
        created_by=row.created_by,
        expires_at=timestamp(row.expires_at),
        revoked_at=timestamp(row.revoked_at),
        revoked_by=row.revoked_by,
        last_used_at=timestamp(row.last_used_at),
    )


def _runner_grant(row: RunnerGrant) -> pb2.RunnerGrant:
    return pb2.RunnerGrant(
        name=row.name,
        namespace=row.namespace,
        modules=row.modules,
        may_activate=row.may_activate,
        may_enroll=row.may_enroll,
        uses_left=row.uses_left,
        created_at=timestamp(row.created_at),
        created_by=row.created_by,
        expires_at=timestamp(row.expires_at),
        revoked_at=timestamp(row.revoked_at),
        revoked_by=row.revoked_by,
    )


def _grants(grants: Sequence[RoleGrant]) -> list[pb2.RoleGrant]:
    return [pb2.RoleGrant(role=grant.role, namespace=grant.namespace) for grant in grants]
