"""The one place that opens channels to controllers and ports for them, so that what must hold for all of them does."""

from collections.abc import Callable
from typing import Final, NamedTuple

import grpc

from cronring.protos.admission import UNCOMPRESSED
from cronring.trust.certificates import Pair
from cronring.trust.holding import Certificates

_OPTIONS: Final = (
    *UNCOMPRESSED,
    # Controllers are inside. A proxy that the environment names for the outside would only read along, or lose them.
    ("grpc.enable_http_proxy", 0),
)


class Tls(NamedTuple):
    """How the other end is known, and what it is shown. Nothing here is checked before a handshake."""

    roots: bytes | None  # PEM; None: those of the operating system
    pair: Pair | None  # what this end shows, where it is asked
    server_name: str  # what the other end's certificate must be for; "": the host that is dialled


class Presented:
    """What a member of the cluster opens channels to others with: its own certificate, and the cluster's name."""

    def __init__(self, certificates: Certificates, server_name: str) -> None:
        self._certificates = certificates
        self._server_name = server_name
        self._generation = certificates.generation
        self._tls = self._made()

    def __call__(self) -> Tls:
        """The same object until certificates are replaced."""
        generation = self._certificates.generation
        if generation != self._generation:
            self._generation, self._tls = generation, self._made()
        return self._tls

    def _made(self) -> Tls:
        held = self._certificates.current
        return Tls(held.authorities, held.pair, self._server_name)


def plaintext() -> None:
    """In place of Presented, where there are no certificates."""


def channel_to(address: str, *options: tuple[str, int | str], answer_bytes: int, tls: Tls | None) -> grpc.aio.Channel:
    """To HOST:PORT; `answer_bytes`: the largest message that is read from there. Without `tls` it is plaintext."""
    here = (*_OPTIONS, ("grpc.max_receive_message_length", answer_bytes), *options)
    if tls is None:
        return grpc.aio.insecure_channel(address, options=here)
    if tls.server_name:
        here = (*here, ("grpc.ssl_target_name_override", tls.server_name))
    chain, key = (tls.pair.certificate, tls.pair.key) if tls.pair is not None else (None, None)
    return grpc.aio.secure_channel(address, grpc.ssl_channel_credentials(tls.roots, key, chain), options=here)


def listen(server: grpc.aio.Server, address: str, certificates: Certificates | None, *, mutual: bool = False) -> int:
    """The port that was opened there. `mutual`: whoever connects must show a certificate of the cluster's CA.

    Certificates that are replaced are shown from then on; connections that are open keep what they began with. Without
    `certificates` it is plaintext. Raises RuntimeError when the address can't be listened on.
    """
    if certificates is None:
        return server.add_insecure_port(address)
    credentials = grpc.dynamic_ssl_server_credentials(
        _configuration(certificates),
        _fetcher(certificates),  # type: ignore[arg-type]  # the stubs don't know of None
        require_client_authentication=mutual,
    )
    return server.add_secure_port(address, credentials)


def _configuration(certificates: Certificates) -> grpc.ServerCertificateConfiguration:
    held = certificates.current
    return grpc.ssl_server_certificate_configuration([(held.pair.key, held.pair.certificate)], held.authorities)


def _fetcher(certificates: Certificates) -> Callable[[], grpc.ServerCertificateConfiguration | None]:
    """gRPC asks before each handshake, on threads of its own; None says that nothing is new.

    It would keep the old ones after an error, and tell nobody. So nothing that can fail is done here: what is held was
    checked when it was read (cronring.trust.holding).
    """
    given = certificates.generation

    def fetch() -> grpc.ServerCertificateConfiguration | None:
        nonlocal given
        now = certificates.generation
        if now == given:
            return None
        given = now
        return _configuration(certificates)

    return fetch
