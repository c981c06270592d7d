"""What controllers and runners call, and who is let in at all: composed here for `main`."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from cronring.controller.api.certified import Certified
from cronring.controller.api.judging import Insecure, Judge, Known
from cronring.controller.api.services import Registration
from cronring.controller.api.throttle import Throttle
from cronring.controller.config import ProcessConfig
from cronring.controller.core.node.events import PacketReceived
from cronring.controller.identity.verifier import JwtVerifier
from cronring.controller.peers.server import GossipService
from cronring.controller.ports.audit_chain import OnRefusal
from cronring.controller.ports.clock import Clock
from cronring.controller.ports.identity import Verifier
from cronring.controller.ports.tokens import TokenStore
from cronring.controller.runners.enrolling import EnrollmentService, RenewalsService, Signing
from cronring.controller.runners.gateway import Gateway
from cronring.controller.services.tokens import TokenVerifier
from cronring.protos.gossip.v1 import gossip_pb2_grpc
from cronring.protos.runner.v1 import runner_pb2_grpc
from cronring.trust.certificates import Authority
from cronring.trust.holding import Certificates


def judge_of(
    config: ProcessConfig,
    own: Certificates | None,
    jwts: JwtVerifier | None,
    tokens: TokenStore,
    throttle: Throttle,
    clock: Clock,
) -> Judge:
    """Who is let in: by certificates and tokens; with --insecure everybody."""
    if own is None:
        return Insecure()
    verifiers: list[Verifier] = [TokenVerifier(tokens, clock.now_ns)]
    if jwts is not None:
        verifiers.append(jwts)
    return Known(verifiers, Certified(own, config.cluster, tokens, clock.wall_us).judged, throttle)


def services_of_members(
    gateway: Gateway, put: Callable[[PacketReceived], None], refused: OnRefusal
) -> Sequence[Registration]:
    """Those of --peer that need no certificates to exist."""
    gossip = GossipService(put, refused)
    return [
        ("cronring.runner.v1.RunnerGateway", partial(runner_pb2_grpc.add_RunnerGatewayServicer_to_server, gateway)),
        ("cronring.gossip.v1.Gossip", partial(gossip_pb2_grpc.add_GossipServicer_to_server, gossip)),
    ]


class Enrolling(NamedTuple):
    """`outside`: by --grpc, with a join token; `inside`: by --peer, with a certificate."""

    outside: Sequence[Registration]
    inside: Sequence[Registration]


def enrolling(
    own: Certificates | None,
    authority: Callable[[], Authority | None],
    cluster: str,
    peers: Callable[[], tuple[tuple[str, str], ...]],
    tokens: TokenStore,
    refused: OnRefusal,
) -> Enrolling:
    """Nothing with --insecure: there are no certificates then."""
    if own is None:
        return Enrolling((), ())
    signing = Signing(own, authority, cluster, peers)
    enrollment, renewals = EnrollmentService(signing, tokens, refused), RenewalsService(signing)
    outside = partial(runner_pb2_grpc.add_EnrollmentServicer_to_server, enrollment)
    inside = partial(runner_pb2_grpc.add_RenewalsServicer_to_server, renewals)
    return Enrolling((("cronring.runner.v1.Enrollment", outside),), (("cronring.runner.v1.Renewals", inside),))
