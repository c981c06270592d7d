"""Where runners get their certificates: the first by a join token, each later one by the certificate before.

A controller that has the CA's key signs them (`--ca-key`); others refuse. A certificate's public key is from the
request; its name is that of the grant.
"""

import datetime as dt
from collections.abc import Callable
from typing import Final

import grpc

from cronring.controller.errors import StoreError, StoreUnavailable
from cronring.controller.ports.audit_chain import OnRefusal
from cronring.controller.ports.caller import caller
from cronring.controller.ports.identity import TokenRefused
from cronring.controller.ports.tokens import RunnerGrant, TokenStore
from cronring.controller.runners.codec import addresses
from cronring.protos.runner.v1 import runner_pb2 as wire
from cronring.protos.runner.v1 import runner_pb2_grpc
from cronring.schema.identity import Kind
from cronring.schema.spiffe import SpiffeError, SpiffeName, parse_uri, runner_name
from cronring.schema.tokens import SecretKind, secret_fault, secret_hash
from cronring.trust.certificates import RUNNER_HOURS, Authority, CertificateError, key_of_request
from cronring.trust.holding import Certificates

LIFETIME: Final = dt.timedelta(hours=RUNNER_HOURS)
_NO_KEY: Final = (
    "this controller signs no certificates: start one with --ca-key FILE, or give the runner a certificate"
    " (`cronring certs issue runner`) by --certs DIR"
)

EnrollContext = grpc.aio.ServicerContext[wire.EnrollRequest, wire.EnrollResponse]
RenewContext = grpc.aio.ServicerContext[wire.RenewRequest, wire.EnrollResponse]


class Signing:
    """`own`: has the CAs that count. `authority()`: the CA that signs; None: none. `peers()`: where runners connect."""

    def __init__(
        self,
        own: Certificates,
        authority: Callable[[], Authority | None],
        cluster: str,
        peers: Callable[[], tuple[tuple[str, str], ...]],
    ) -> None:
        self._own = own
        self._authority = authority
        self.cluster = cluster
        self._peers = peers

    def checked(self, csr: bytes) -> None:
        """Raises CertificateError for a request that can't be signed, LookupError where nothing signs."""
        key_of_request(csr)
        if self._authority() is None:
            raise LookupError(_NO_KEY)

    def answer(self, name: SpiffeName, csr: bytes, after_us: int = 0) -> wire.EnrollResponse:
        """`after_us`: the certificate counts as issued after this instant. Raises as `checked`."""
        key, authority = key_of_request(csr), self._authority()
        if authority is None:
            raise LookupError(_NO_KEY)
        return wire.EnrollResponse(
            certificate=authority.sign(name, key, LIFETIME, after_us=after_us),
            authorities=self._own.current.authorities,
            addresses=addresses(self._peers()),
        )


class EnrollmentService(runner_pb2_grpc.EnrollmentServicer):
    """`refused` counts join tokens that are not valid."""

    def __init__(self, signing: Signing, grants: TokenStore, refused: OnRefusal) -> None:
        self._signing = signing
        self._grants = grants
        self._refused = refused

    async def Enroll(self, request: wire.EnrollRequest, context: EnrollContext) -> wire.EnrollResponse:
        """UNAUTHENTICATED for a join token that gives nothing, FAILED_PRECONDITION where nobody signs."""
        if fault := secret_fault(SecretKind.JOIN, request.join_token):
            why = f"this is no join token: {fault}"
            self._refused("unauthenticated", why=why)
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, why)
        try:
            # Checked first, so that a request that can't be signed doesn't use up the join token.
            self._signing.checked(request.csr)
            grant = await self._grants.take_join(secret_hash(SecretKind.JOIN, request.join_token))
            name = runner_name(self._signing.cluster, grant.namespace, grant.name)
            return self._signing.answer(name, request.csr, await self._free_since(grant))
        except TokenRefused as error:
            self._refused("unauthenticated", why=str(error))
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, str(error))
        except CertificateError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"csr: {error}")
        except (LookupError, SpiffeError) as error:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
        except StoreUnavailable as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, f"PostgreSQL can't be asked: {error}")
        except StoreError as error:
            await context.abort(grpc.StatusCode.INTERNAL, f"PostgreSQL refused: {error}")

    async def _free_since(self, grant: RunnerGrant) -> int:
        """Since when the grant's name is free. Raises TokenRefused if the grant has been revoked meanwhile."""
        found = await self._grants.runner_grant(grant.name)
        if found is None or found.grant.grant_id != grant.grant_id:
            raise TokenRefused(f"the runner grant {grant.name!r} has just been revoked")
        return found.name_freed_at or 0


class RenewalsService(runner_pb2_grpc.RenewalsServicer):
    """The door has judged the caller's certificate and grant."""

    def __init__(self, signing: Signing) -> None:
        self._signing = signing

    async def Renew(self, request: wire.RenewRequest, context: RenewContext) -> wire.EnrollResponse:
        """INVALID_ARGUMENT for what can't be signed, FAILED_PRECONDITION where nobody signs."""
        who = caller()
        if who.kind is not Kind.RUNNER:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "without certificates there are none to renew")
        try:
            return self._signing.answer(parse_uri(who.name), request.csr)
        except CertificateError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"csr: {error}")
        except LookupError as error:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
