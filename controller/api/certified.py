"""Whose certificate a call came with. TLS has proven that the caller has the key; this says who the caller is.

gRPC verified the chain when the connection was made, and a connection may be old. So each look asks three things again.
Has the certificate ended? Did one of the CAs that count now sign it? Is there still a grant for the runner?
"""

import asyncio
import contextlib
from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

from cryptography import x509

from cronring.controller.api.policy import Audience
from cronring.controller.api.shown import Shown
from cronring.controller.errors import Forbidden, StoreUnavailable, Unauthenticated
from cronring.controller.ports.tokens import TokenStore
from cronring.schema.identity import Kind, Principal
from cronring.schema.spiffe import PeerKind, SpiffeName
from cronring.trust.certificates import CertificateError, certificates_of, issued_us, name_in, signed_by
from cronring.trust.holding import Certificates

_KINDS: Final = {PeerKind.CONTROLLER: Kind.CONTROLLER, PeerKind.RUNNER: Kind.RUNNER}
_WANTED: Final = {
    Audience.CONTROLLERS: PeerKind.CONTROLLER, Audience.RUNNERS: PeerKind.RUNNER, Audience.GRANTED: PeerKind.RUNNER,
}  # fmt: skip
_CERTIFICATES_KEPT: Final = 1_024
AWAY_S: Final = 1.0  # a PostgreSQL that takes longer is away; a runner that hears nothing for 5 s hangs up
_NOBODY: Final = "this port is for controllers and runners, which show a certificate of the cluster"


class _Read(NamedTuple):
    """A certificate that was read."""

    leaf: x509.Certificate
    name: SpiffeName
    issued_us: int
    expires_us: int


class Certified:
    """A judge of calls by certificate. `own`: this controller's, with the CAs that count now.

    `now_us`: microseconds since 1970, by this host's clock, as TLS has them.
    """

    def __init__(self, own: Certificates, cluster: str, grants: TokenStore, now_us: Callable[[], int]) -> None:
        self._own = own
        self._cluster = cluster
        self._grants = grants
        self._now_us = now_us

    async def judged(self, audience: Audience, shown: Shown) -> Principal:
        """Raises Unauthenticated, Forbidden, StoreError; of GRANTED StoreUnavailable."""
        pem = _certificate(shown)
        read = _read(pem)
        name = read.name
        holder = Principal(_KINDS[name.kind], name.uri, (), read.expires_us)
        if read.expires_us <= self._now_us():
            raise Unauthenticated(f"the certificate of {name.uri} has expired; a new one is needed", holder)
        if not _counts(pem, self._own.current.authorities):
            raise Unauthenticated(f"the CA that signed {name.uri} does not count any more; a new certificate is needed")
        if name.cluster != self._cluster:
            raise Unauthenticated(f"{name.uri} is of another cluster than {self._cluster!r}", holder)
        if name.kind is not _WANTED[audience]:
            raise Forbidden(f"this is for {_WANTED[audience]}s, and {name.uri} is none", holder)
        if audience is Audience.GRANTED:
            await self._granted(name, read.issued_us, holder)
        elif audience is Audience.RUNNERS:
            # While PostgreSQL is away, a runner needs contact, or it stops its runs. So its certificate alone counts:
            # nothing is registered, dispatched or committed meanwhile, and the runner is judged again later. It can't
            # renew its certificate so: if the grant was revoked, the new certificate would count as issued later.
            with contextlib.suppress(StoreUnavailable, TimeoutError):
                async with asyncio.timeout(AWAY_S):
                    await self._granted(name, read.issued_us, holder)
        return holder

    async def _granted(self, name: SpiffeName, issued: int, holder: Principal) -> None:
        found = await self._grants.runner_grant(name.name)
        if found is None or found.grant.namespace != name.namespace:
            raise Unauthenticated(
                f"there is no runner grant {name.name!r} in namespace {name.namespace!r}: it was revoked, or never"
                f" given; cronring runner-grant create --name {name.name} --namespace {name.namespace}",
                holder,
            )
        # If a PKI backdates by less than we do, a certificate of the former grant from its last 5 minutes still passes.
        # If it backdates by more, new certificates are refused for the difference. A new name avoids both.
        if found.name_freed_at is not None and issued < found.name_freed_at:
            raise Unauthenticated(
                f"the certificate of {name.uri} is older than the grant: another one of that name was revoked since it"
                " was issued; a new certificate is needed",
                holder,
            )


def _certificate(shown: Shown) -> bytes:
    """Of the connection, as PEM."""
    certificate = shown.auth_context().get("x509_pem_cert")
    if not certificate:
        raise Unauthenticated(_NOBODY)
    return next(iter(certificate))


@lru_cache(maxsize=_CERTIFICATES_KEPT)
def _read(pem: bytes) -> _Read:
    try:
        leaf = certificates_of(pem)[0]
        return _Read(leaf, name_in(leaf), issued_us(leaf), int(leaf.not_valid_after_utc.timestamp() * 1e6))
    except CertificateError as error:
        raise Unauthenticated(f"this certificate names nobody of the cluster: {error}") from error


@lru_cache(maxsize=_CERTIFICATES_KEPT)
def _counts(pem: bytes, authorities: bytes) -> bool:
    """Whether one of these CAs signed it. Cached, as each packet of gossip asks, and checking a signature is slow."""
    return signed_by(_read(pem).leaf, certificates_of(authorities))
