"""Calls about how the cluster is: of each controller about itself, and of one about the database."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from cronring.client import convert
from cronring.client.channel import Failover
from cronring.client.errors import ClientError, Unreachable
from cronring.protos.cronring.v1 import doctor_pb2
from cronring.protos.cronring.v1.doctor_pb2_grpc import DoctorStub


@dataclass(frozen=True, slots=True)
class SeenMember:
    """A member as another one sees it. `unreachable`: why a call to it had no answer; empty: it had."""

    id: str
    grpc_address: str
    status: str
    unreachable: str


@dataclass(frozen=True, slots=True)
class ControllerReport:
    """What a controller says of itself. `not_ready`: why it may claim nothing; empty: it may."""

    address: str  # where it was asked
    id: str
    grpc_address: str
    version: str
    not_ready: str
    draining: bool
    in_drill: bool  # for a drill
    database_ok: bool
    lease_valid: bool
    lease_left_ms: int
    lease_held_ms: int
    database_time: datetime | None
    clock_error_us: int
    wall_clock_offset_us: int
    clock_steps: int
    ring_digest: str
    ring_members: tuple[str, ...]
    members: tuple[SeenMember, ...]
    health: int
    queues: Mapping[str, int]
    settings: Mapping[str, str]
    runners: tuple[str, ...]
    zone_data: str = ""  # the version of tzdata by which it reckons; empty: it doesn't say
    certificate_left_ms: int | None = None  # until the first of its certificates ends; None: it has none
    certificate_problem: str = ""  # why one that was replaced could not be taken
    issuer_problem: str = ""  # why keys of issuers can't be fetched
    secrets_key: str = ""  # the id of the key by which it encrypts secrets
    secrets_problem: str = ""  # why secrets don't open there, or their keys can't be taken


@dataclass(frozen=True, slots=True)
class NoReport:
    """Nobody answered at this address; or (`answered`) somebody did, and refused."""

    address: str
    reason: str
    answered: bool = False


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One check of the database."""

    check: str
    verdict: str
    seen: str
    advice: str


class DoctorCalls:
    """Every controller is asked, as each knows only itself."""

    def __init__(self, failover: Failover) -> None:
        self._failover = failover

    async def controllers(self, addresses: Sequence[str]) -> tuple[ControllerReport | NoReport, ...]:
        """What those at these addresses say, in their order."""
        timeout = self._failover.timeout_s
        request = doctor_pb2.DiagnoseControllerRequest()
        answers = await self._failover.each(
            addresses, lambda channel: DoctorStub(channel).DiagnoseController(request, timeout=timeout)
        )
        return tuple(
            _none(address, answer) if isinstance(answer, ClientError) else _report(address, answer)
            for address, answer in answers
        )

    async def database(self, address: str, timeout_s: float = 30.0) -> tuple[Diagnosis, ...] | NoReport:
        """What the controller at this address finds of its database."""
        request = doctor_pb2.DiagnoseDatabaseRequest()
        answers = await self._failover.each(
            [address], lambda channel: DoctorStub(channel).DiagnoseDatabase(request, timeout=timeout_s)
        )
        ((_, answer),) = answers
        if isinstance(answer, ClientError):
            return _none(address, answer)
        return tuple(Diagnosis(each.check, each.verdict, each.seen, each.advice) for each in answer.findings)


def _none(address: str, error: ClientError) -> NoReport:
    if isinstance(error, Unreachable):
        return NoReport(address, "; ".join(why for _, why in error.tried))
    return NoReport(address, str(error), answered=True)


def _report(address: str, message: doctor_pb2.DiagnoseControllerResponse) -> ControllerReport:
    return ControllerReport(
        address=address,
        id=message.id,
        grpc_address=message.grpc_address,
        version=message.version,
        not_ready=message.not_ready,
        draining=message.draining,
        in_drill=message.in_drill,
        database_ok=message.database_ok,
        lease_valid=message.lease_valid,
        lease_left_ms=message.lease_left_ms,
        lease_held_ms=message.lease_held_ms,
        database_time=convert.instant(message.database_time) if message.HasField("database_time") else None,
        clock_error_us=message.clock_error_us,
        wall_clock_offset_us=message.wall_clock_offset_us,
        clock_steps=message.clock_steps,
        ring_digest=message.ring_digest,
        ring_members=tuple(message.ring_members),
        members=tuple(
            SeenMember(each.id, each.grpc_address, each.status, each.unreachable) for each in message.members
        ),
        health=message.health,
        queues=dict(message.queues),
        settings=dict(message.settings),
        runners=tuple(message.runners),
        zone_data=message.zone_data,
        certificate_left_ms=message.certificate_left_ms if message.HasField("certificate_left_ms") else None,
        certificate_problem=message.certificate_problem,
        issuer_problem=message.issuer_problem,
        secrets_key=message.secrets_key,
        secrets_problem=message.secrets_problem,
    )
