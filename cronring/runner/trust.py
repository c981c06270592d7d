"""Who a runner is: a certificate from a folder, or one that it enrolls for and renews by itself."""

import asyncio
import datetime as dt
import sys
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, Protocol

import grpc

from cronring.protos.runner.v1 import runner_pb2, runner_pb2_grpc
from cronring.runner.config import STDIN, RunnerConfig
from cronring.schema.address import is_address
from cronring.schema.spiffe import PeerKind, server_name
from cronring.trust.certificates import (
    CertificateError,
    Pair,
    certificates_of,
    check_pair,
    key_pem,
    name_in,
    new_key,
    request_for,
)
from cronring.trust.channels import Presented, Tls, channel_to, plaintext
from cronring.trust.handshakes import why_no_tls
from cronring.trust.holding import RELOAD_S, CertificateFolder, Certificates, CertificateSet, read_authorities

ANSWER_BYTES: Final = 256 * 1024
CALL_S: Final = 10.0
RETRY_S: Final = 2.0
TOKEN_LENGTH_MAX: Final = 2_000
# Of a certificate's time: of 24 h, eight are left to try again each minute, which outlasts an outage.
RENEW_AFTER: Final = 2 / 3
RENEW_AGAIN_S: Final = 60.0


class TrustLog(Protocol):
    """Takes an event's name, and values."""

    def info(self, event: str, **values: str) -> None: ...
    def warning(self, event: str, **values: str) -> None: ...


class RunnerTrust(NamedTuple):
    """`tls()`: what links are opened with now. `grant`: what the runner's id begins with; "": there are no names.

    `controllers`: where the links begin. `certificates`: None with --insecure.
    """

    tls: Callable[[], Tls | None]
    grant: str
    controllers: tuple[str, ...]
    certificates: Certificates | None


async def establish(config: RunnerConfig, log: TrustLog) -> RunnerTrust:
    """By a folder at once; by a join token as soon as a controller answers.

    Raises CertificateError for what can't be used, or was refused for good.
    """
    if config.insecure:
        return RunnerTrust(plaintext, "", config.controllers, None)
    if config.certs is not None:
        held: Certificates = CertificateFolder(config.certs)
        controllers = config.controllers
    else:
        enrolled, controllers = await _enroll(config, log)
        held = Certificates(enrolled)
    name = name_in(held.current.leaf)
    if name.kind is not PeerKind.RUNNER or name.cluster != config.cluster or name.namespace != config.namespace:
        raise CertificateError(
            f"the certificate is for {name.uri}, and this runner is one of cluster {config.cluster!r} and namespace"
            f" {config.namespace!r}"
        )
    return RunnerTrust(Presented(held, server_name(config.cluster)), name.name, controllers, held)


async def keep(
    trust: RunnerTrust, peers: Callable[[], tuple[str, ...]], moved: Callable[[], Awaitable[None]], log: TrustLog
) -> None:
    """For ever: read anew what is replaced on the disk, or renew what was enrolled for. Then `moved()` moves the links.

    `peers()`: controllers that may be asked.
    """
    held = trust.certificates
    told = ""
    while held is not None:
        if isinstance(held, CertificateFolder):
            await asyncio.sleep(RELOAD_S)
            changed = held.reload()
        else:
            await asyncio.sleep(_until_renewal_s(held.current))
            changed = await _renewed(trust, held, peers(), log)
        if held.problem and held.problem != told:
            log.warning("certificates_not_taken", reason=held.problem)
        told = held.problem
        if changed:
            log.info("certificates_replaced", expires=held.current.expires.isoformat())
            await moved()


def _until_renewal_s(held: CertificateSet) -> float:
    leaf, now = held.leaf, dt.datetime.now(dt.UTC)
    lifetime = leaf.not_valid_after_utc - leaf.not_valid_before_utc
    return max((leaf.not_valid_before_utc + lifetime * RENEW_AFTER - now).total_seconds(), RENEW_AGAIN_S)


async def _renewed(trust: RunnerTrust, held: Certificates, peers: tuple[str, ...], log: TrustLog) -> bool:
    key = new_key()
    request = runner_pb2.RenewRequest(csr=request_for(key))
    for address in peers:
        async with channel_to(address, answer_bytes=ANSWER_BYTES, tls=trust.tls()) as channel:
            try:
                answer = await runner_pb2_grpc.RenewalsStub(channel).Renew(request, timeout=CALL_S)
                held.replace(_taken(answer, key_pem(key)))
            except grpc.aio.AioRpcError as error:
                log.warning("certificate_not_renewed", address=address, reason=_why_not(held.current, error))
            except CertificateError as error:
                log.warning("certificate_not_renewed", address=address, reason=str(error))
            else:
                return True
    return False


def _why_not(held: CertificateSet, error: grpc.aio.AioRpcError) -> str:
    # TLS lets nobody in by it, and tells whoever comes nothing.
    if error.code() is grpc.StatusCode.UNAVAILABLE and held.expires <= dt.datetime.now(dt.UTC):
        return "it has expired, so no controller takes it; start this runner anew, with a join token that is good"
    return f"{error.code().name}: {error.details()}"


async def _enroll(config: RunnerConfig, log: TrustLog) -> tuple[CertificateSet, tuple[str, ...]]:
    assert config.ca is not None, "RunnerConfig sees to it"
    tls = Tls(read_authorities(config.ca), None, server_name(config.cluster))
    key, told = new_key(), ""
    request = runner_pb2.EnrollRequest(join_token=_token(config), csr=request_for(key))
    while True:
        for address in config.controllers:
            async with channel_to(address, answer_bytes=ANSWER_BYTES, tls=tls) as channel:
                try:
                    answer = await runner_pb2_grpc.EnrollmentStub(channel).Enroll(request, timeout=CALL_S)
                except grpc.aio.AioRpcError as error:
                    if error.code() in _FOR_GOOD:
                        raise CertificateError(f"{address} gives no certificate: {error.details()}") from error
                    reason = await why_no_tls(address, tls) or f"{error.code().name}: {error.details()}"
                    if reason != told:
                        log.warning("not_enrolled_yet", address=address, reason=reason)
                    told = reason
                    continue
                peers = tuple(filter(is_address, answer.addresses))
                return _taken(answer, key_pem(key)), peers
        await asyncio.sleep(RETRY_S)


_FOR_GOOD: Final = frozenset({
    grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.UNIMPLEMENTED,
})  # fmt: skip


def _token(config: RunnerConfig) -> str:
    assert config.join_token_file is not None, "RunnerConfig sees to it"
    try:
        if config.join_token_file == STDIN:
            token = sys.stdin.buffer.read(TOKEN_LENGTH_MAX + 2).decode("ascii").strip()
        else:
            token = config.join_token_file.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CertificateError(f"--join-token-file {config.join_token_file}: it can't be read") from error
    if not token or len(token) > TOKEN_LENGTH_MAX:
        raise CertificateError(f"--join-token-file {config.join_token_file}: it holds no join token")
    return token


def _taken(answer: runner_pb2.EnrollResponse, key: bytes) -> CertificateSet:
    """Raises CertificateError for an answer that doesn't fit the key, or has no CA."""
    pair = Pair(answer.certificate, key)
    certificates_of(answer.authorities)  # what can't be read would refuse every controller from then on
    return CertificateSet(answer.authorities, pair, check_pair(pair))
