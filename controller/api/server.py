"""A gRPC server: services of a controller on one port. There are two, or with --insecure one.

They share the event loop with the ticks. docs/decisions/0064: why they have no process of their own.
"""

import errno
import socket
from collections.abc import Callable, Sequence
from typing import Any, Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc
from grpc_reflection.v1alpha._async import ReflectionServicer

from cronring.controller.api.calls import Calls
from cronring.controller.api.door import Door
from cronring.controller.api.health import ServiceHealth
from cronring.controller.api.judging import Judge
from cronring.controller.api.policy import LARGEST
from cronring.controller.config import Address
from cronring.controller.ports.audit_chain import OnRefusal
from cronring.protos.admission import ANSWER_BYTES_MAX, UNCOMPRESSED
from cronring.trust.channels import listen
from cronring.trust.holding import Certificates

HANDSHAKE_S: Final = 10.0  # of TLS and of HTTP/2, together
IDLE_S: Final = 300.0  # a connection without calls is closed after this; clients connect again when they need it
# Calls of one connection at once. More wait at the client. Our clients have 32 calls at most, and some streams.
CALLS_OF_CONNECTION: Final = 500
CONNECTIONS: Final = 1_000
_OPTIONS: Final = (
    ("grpc.so_reuseport", 0),  # a second controller on the same port is a mistake: it must fail, not share the calls
    *UNCOMPRESSED,
    # Room for a JWT of 16 KiB and other headers. Above gRPC's default of 8 KiB, calls would fail at random.
    ("grpc.max_metadata_size", 24 * 1024),
    ("grpc.max_receive_message_length", LARGEST),  # of each method its own, see cronring.controller.api.door
    ("grpc.max_send_message_length", ANSWER_BYTES_MAX),
    # Connections that a network cut off, or whose other end is stopped, must not hold a session for ever.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    # Runners may ask as often.
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 1_000),
)


class AddressInUseError(Exception):
    """Something else listens there. The message names the address, and the option to change."""


def check_free(option: str, address: Address) -> None:
    """Raises AddressInUseError when nobody could listen there, long before anybody has to."""
    try:
        family, kind, protocol, _, found = socket.getaddrinfo(
            address.host or None, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(found)
    except OSError as error:
        raise in_use(option, str(address), error) from error


def in_use(option: str, address: str, error: OSError) -> AddressInUseError:
    if error.errno == errno.EADDRINUSE:
        return AddressInUseError(f"{address} is in use by another process; give another address with {option}")
    return AddressInUseError(
        f"can't listen on {address}: {error.strerror or error}; give another address with {option}"
    )


def _bounds(connections: int) -> tuple[tuple[str, int], ...]:
    """Limits of connections. There is no maximal age, as a runner's stream lasts as long as the runner."""
    return (
        ("grpc.max_allowed_incoming_connections", connections),  # of each port; more are hung up on
        ("grpc.server_handshake_timeout_ms", round(HANDSHAKE_S * 1_000)),
        ("grpc.max_connection_idle_ms", round(IDLE_S * 1_000)),
        ("grpc.max_concurrent_streams", CALLS_OF_CONNECTION),
    )


class GrpcServer:
    """bind, add the services, start, stop; in this order. `connections`: the most that are open at once."""

    def __init__(
        self,
        calls: Calls,
        is_ready: Callable[[], bool],
        refused: OnRefusal,
        judge: Judge,
        connections: int = CONNECTIONS,
    ) -> None:
        self._server = grpc.aio.server(options=(*_OPTIONS, *_bounds(connections)))
        self._door: Any = Door(self._server, refused, calls, judge)
        self._is_ready = is_ready
        self._health: ServiceHealth | None = None

    def bind(self, option: str, address: str, certificates: Certificates | None, *, mutual: bool = False) -> int:
        """Returns the port. It differs from that of `address` only if that was 0. AddressInUseError names `option`.

        Without certificates it is plaintext. `mutual`: clients must show certificates, too.
        """
        try:
            return listen(self._server, address, certificates, mutual=mutual)
        except RuntimeError as error:
            raise AddressInUseError(f"can't listen on {address}; give another address with {option}") from error

    def add(self, services: Sequence[tuple[str, Callable[[grpc.aio.Server], None]]], *, reflects: bool = True) -> None:
        """(full name, what adds the servicer to a server) of each; health follows from them.

        `reflects`: callers who may view anything can list the services. Raises UnjudgedMethodError for a method without
        a line in controller/api/policy.py.
        """
        names = tuple(name for name, _ in services)
        for _, add in services:
            add(self._door)
        self._health = ServiceHealth(names, self._is_ready)
        health_pb2_grpc.add_HealthServicer_to_server(self._health.servicer, self._door)
        if not reflects:
            return
        health_name = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name
        servicer = ReflectionServicer((*names, health_name, reflection.SERVICE_NAME))
        reflection_pb2_grpc.add_ServerReflectionServicer_to_server(servicer, self._door)

    async def start(self) -> None:
        await self.health.tell()
        await self._server.start()

    async def stop(self, grace_s: float) -> None:
        """Take no more calls, and give those under way `grace_s`."""
        await self.health.shut_down()
        await self._server.stop(grace_s)
        self._door.close()

    @property
    def health(self) -> ServiceHealth:
        assert self._health is not None, "add() comes first"
        return self._health
