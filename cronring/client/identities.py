"""Calls about tokens, grants of runners, and who one is."""

import builtins
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from cronring.client import convert
from cronring.client.channel import Failover
from cronring.client.paging import follow
from cronring.protos.cronring.v1 import identities_pb2 as pb2
from cronring.protos.cronring.v1.identities_pb2_grpc import IdentitiesStub

if TYPE_CHECKING:
    from cronring.protos.cronring.v1.identities_pb2_grpc import IdentitiesAsyncStub  # there in the stubs only

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class RoleIn:
    """A role in a namespace; "*": in all of them."""

    role: str
    namespace: str = "default"


@dataclass(frozen=True, slots=True)
class TokenInfo:
    """`expires_at` None: never. `last_used_at`: to a minute or so."""

    name: str
    grants: tuple[RoleIn, ...]
    created_at: datetime | None
    created_by: str
    expires_at: datetime | None
    revoked_at: datetime | None
    revoked_by: str
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class MadeToken:
    """`secret` is never told again, and `repr` doesn't show it."""

    token: TokenInfo
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class GrantOfRunners:
    """`modules` empty: any. `uses_left` None: any number may enroll. `expires_at`: of the join token."""

    name: str
    namespace: str
    modules: tuple[str, ...]
    may_activate: bool
    may_enroll: bool
    uses_left: int | None
    created_at: datetime | None
    created_by: str
    expires_at: datetime | None
    revoked_at: datetime | None
    revoked_by: str


@dataclass(frozen=True, slots=True)
class MadeGrant:
    """`secret`: the join token, never told again; "" if it has none."""

    grant: GrantOfRunners
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class LoggedIn:
    """A browser's session. `issuer` "": a token made it. `expires_at`: unless it is used. `ended`: why; "": it lives.

    `last_used_at`: to a minute or so.
    """

    id: int
    principal: str
    grants: tuple[RoleIn, ...]
    issuer: str
    origin: str
    created_at: datetime | None
    last_used_at: datetime | None
    expires_at: datetime | None
    revoked_at: datetime | None
    revoked_by: str
    ended: str


@dataclass(frozen=True, slots=True)
class Myself:
    """`kind`: token, user, runner, controller, or local."""

    kind: str
    name: str
    grants: tuple[RoleIn, ...]
    expires_at: datetime | None


class IdentityCalls:
    """Tokens, grants of runners, sessions of browsers, whoami. `by` says who asks, which is kept; "": this address."""

    def __init__(self, failover: Failover) -> None:
        self._failover = failover

    async def create_token(
        self, name: str, grants: Iterable[RoleIn], *, lasts_s: float | None = None, by: str = ""
    ) -> MadeToken:
        """`lasts_s` None: for ever. A second one of the name is a Conflict. Raises Invalid, PermissionDenied."""
        request = pb2.CreateTokenRequest(
            name=name, grants=[pb2.RoleGrant(role=each.role, namespace=each.namespace) for each in grants],
            lasts_ms=_ms(lasts_s), requested_by=by,
        )  # fmt: skip
        answer = await self._change(
            lambda stub, timeout: stub.CreateToken(request, timeout=timeout),
            f"`cronring token list`; if {name!r} is there, its secret is lost: revoke it, and make it again",
            secret=True,
        )
        return MadeToken(_token(answer.token), answer.secret)

    async def tokens(self, *, with_revoked: bool = False, limit: int | None = None) -> builtins.list[TokenInfo]:
        """Those that give nothing outside of the caller's namespaces, in the order in which they were made."""

        async def fetch(page_size: int, token: str) -> tuple[builtins.list[TokenInfo], str]:
            request = pb2.ListTokensRequest(page_size=page_size, page_token=token, with_revoked=with_revoked)
            answer = await self._unary(lambda stub, timeout: stub.ListTokens(request, timeout=timeout))
            return [_token(each) for each in answer.tokens], answer.next_page_token

        return await follow(fetch, limit)

    async def count_tokens(self, *, with_revoked: bool = False) -> int:
        """How many `tokens` has."""
        request = pb2.ListTokensRequest(page_size=1, with_revoked=with_revoked, total=True)
        answer = await self._unary(lambda stub, timeout: stub.ListTokens(request, timeout=timeout))
        return answer.total.count

    async def revoke_token(self, name: str, by: str = "") -> TokenInfo:
        """For every call, a second later at most. Raises NotFound if no token of that name is left."""
        request = pb2.RevokeTokenRequest(name=name, requested_by=by)
        return _token(
            await self._change(
                lambda stub, timeout: stub.RevokeToken(request, timeout=timeout), "`cronring token list --revoked`"
            )
        )

    async def create_runner_grant(
        self,
        name: str,
        namespace: str = "default",
        modules: Sequence[str] = (),
        *,
        may_activate: bool = False,
        certificate_only: bool = False,
        uses: int | None = None,
        lasts_s: float | None = None,
        by: str = "",
    ) -> MadeGrant:
        """`uses` None: any number may enroll. `lasts_s`: of its join token. A second one of the name is a Conflict."""
        request = pb2.CreateRunnerGrantRequest(
            name=name, namespace=namespace, modules=modules, may_activate=may_activate,
            certificate_only=certificate_only, uses=uses, lasts_ms=_ms(lasts_s), requested_by=by,
        )  # fmt: skip
        answer = await self._change(
            lambda stub, timeout: stub.CreateRunnerGrant(request, timeout=timeout),
            f"`cronring runner-grant list`; if {name!r} is there, its secret is lost: revoke it, and make it again",
            secret=True,
        )
        return MadeGrant(_grant(answer.grant), answer.secret)

    async def runner_grants(
        self, *, with_revoked: bool = False, limit: int | None = None
    ) -> builtins.list[GrantOfRunners]:
        """Of the caller's namespaces, in the order in which they were made."""

        async def fetch(page_size: int, token: str) -> tuple[builtins.list[GrantOfRunners], str]:
            request = pb2.ListRunnerGrantsRequest(page_size=page_size, page_token=token, with_revoked=with_revoked)
            answer = await self._unary(lambda stub, timeout: stub.ListRunnerGrants(request, timeout=timeout))
            return [_grant(each) for each in answer.runner_grants], answer.next_page_token

        return await follow(fetch, limit)

    async def count_runner_grants(self, *, with_revoked: bool = False) -> int:
        """How many `runner_grants` has."""
        request = pb2.ListRunnerGrantsRequest(page_size=1, with_revoked=with_revoked, total=True)
        answer = await self._unary(lambda stub, timeout: stub.ListRunnerGrants(request, timeout=timeout))
        return answer.total.count

    async def revoke_runner_grant(self, name: str, by: str = "") -> GrantOfRunners:
        """For those who have enrolled, too. Raises NotFound if no grant of that name is left."""
        request = pb2.RevokeRunnerGrantRequest(name=name, requested_by=by)
        return _grant(
            await self._change(
                lambda stub, timeout: stub.RevokeRunnerGrant(request, timeout=timeout),
                "`cronring runner-grant list --revoked`",
            )
        )

    async def sessions(self, *, with_ended: bool = False, limit: int | None = None) -> builtins.list[LoggedIn]:
        """The caller's own, and those that give nothing outside of the caller's namespaces; in the order of logins."""

        async def fetch(page_size: int, token: str) -> tuple[builtins.list[LoggedIn], str]:
            request = pb2.ListSessionsRequest(page_size=page_size, page_token=token, with_ended=with_ended)
            answer = await self._unary(lambda stub, timeout: stub.ListSessions(request, timeout=timeout))
            return [_session(each) for each in answer.sessions], answer.next_page_token

        return await follow(fetch, limit)

    async def count_sessions(self, *, with_ended: bool = False) -> int:
        """How many `sessions` has."""
        request = pb2.ListSessionsRequest(page_size=1, with_ended=with_ended, total=True)
        answer = await self._unary(lambda stub, timeout: stub.ListSessions(request, timeout=timeout))
        return answer.total.count

    async def revoke_session(self, session_id: int, by: str = "") -> LoggedIn:
        """For every request, a second later at most. Raises NotFound if it has ended, or isn't the caller's to see."""
        request = pb2.RevokeSessionRequest(id=session_id, requested_by=by)
        return _session(
            await self._change(
                lambda stub, timeout: stub.RevokeSession(request, timeout=timeout), "`cronring session list --ended`"
            )
        )

    async def who_am_i(self) -> Myself:
        """Whom the controllers take the caller for. Raises Unauthenticated."""
        answer = await self._unary(lambda stub, timeout: stub.WhoAmI(pb2.WhoAmIRequest(), timeout=timeout))
        return Myself(answer.kind, answer.name, _roles(answer.grants), convert.instant(answer.expires_at))

    async def _change(
        self, call: "Callable[[IdentitiesAsyncStub, float], Awaitable[Answer]]", look: str, *, secret: bool = False
    ) -> Answer:
        return await self._failover.change(
            lambda channel: call(IdentitiesStub(channel), self._failover.timeout_s), look, secret=secret
        )

    async def _unary(self, call: "Callable[[IdentitiesAsyncStub, float], Awaitable[Answer]]") -> Answer:
        return await self._failover.unary(lambda channel: call(IdentitiesStub(channel), self._failover.timeout_s))


def _ms(lasts_s: float | None) -> int | None:
    return None if lasts_s is None else round(lasts_s * 1_000)


def _roles(grants: Iterable[pb2.RoleGrant]) -> tuple[RoleIn, ...]:
    return tuple(RoleIn(each.role, each.namespace) for each in grants)


def _token(message: pb2.Token) -> TokenInfo:
    return TokenInfo(
        message.name, _roles(message.grants), convert.instant(message.created_at), message.created_by,
        convert.instant(message.expires_at), convert.instant(message.revoked_at), message.revoked_by,
        convert.instant(message.last_used_at),
    )  # fmt: skip


def _session(message: pb2.Session) -> LoggedIn:
    return LoggedIn(
        message.id, message.principal, _roles(message.grants), message.issuer, message.origin,
        convert.instant(message.created_at), convert.instant(message.last_used_at),
        convert.instant(message.expires_at), convert.instant(message.revoked_at), message.revoked_by, message.ended,
    )  # fmt: skip


def _grant(message: pb2.RunnerGrant) -> GrantOfRunners:
    return GrantOfRunners(
        message.name, message.namespace, tuple(message.modules), message.may_activate, message.may_enroll,
        message.uses_left if message.HasField("uses_left") else None, convert.instant(message.created_at),
        message.created_by, convert.instant(message.expires_at), convert.instant(message.revoked_at),
        message.revoked_by,
    )  # fmt: skip
