"""cronring.v1.Doctor: how this controller is, and how it finds the others and the database. Only reads."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, Protocol

from cronring.controller.api.cluster import status_word
from cronring.controller.api.requests import Context
from cronring.controller.core.doctor.finding import Finding
from cronring.controller.core.node.pgclock import DatabaseClock
from cronring.controller.core.node.ring import Ring
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.core.swim.member import Member
from cronring.controller.ports.clock import Clock
from cronring.controller.ports.store import ControllerInfo
from cronring.protos.cronring.v1 import doctor_pb2, doctor_pb2_grpc
from cronring.protos.instants import timestamp

_STEPS_WITHIN_US: Final = 3_600_000_000
_NS_PER_MS: Final = 1_000_000


class ExaminedNode(Protocol):
    """What a node shows of itself."""

    @property
    def ring(self) -> Ring: ...
    @property
    def clock(self) -> DatabaseClock: ...
    @property
    def draining(self) -> bool: ...
    @property
    def in_drill(self) -> bool: ...
    @property
    def lease_since_ns(self) -> int | None: ...
    @property
    def lease_until_ns(self) -> int: ...
    @property
    def health(self) -> int: ...
    def members(self) -> list[Member]: ...
    def client_address(self, member_id: str) -> str: ...


class ProcessFacts(Protocol):
    """What the process knows beside its node."""

    def not_ready(self) -> str | None: ...
    def database_ok(self) -> bool: ...
    def queues(self) -> dict[str, int]: ...
    def runners(self) -> Sequence[str]: ...
    def certificate_left_ms(self) -> int | None: ...
    def certificate_problem(self) -> str: ...
    def issuer_problem(self) -> str: ...
    def secrets_key(self) -> str: ...
    def secrets_problem(self) -> str: ...
    async def unreachable(self, addresses: Iterable[str]) -> dict[str, str]:
        """Which of them don't answer, and why."""
        ...


class DoctorService(doctor_pb2_grpc.DoctorServicer):
    """`examine` checks the database; one check at a time, however many callers there are."""

    def __init__(
        self,
        info: ControllerInfo,
        node: ExaminedNode,
        around: ProcessFacts,
        clock: Clock,
        settings: ClusterSettings,
        examine: Callable[[], Awaitable[Sequence[Finding]]],
    ) -> None:
        self._info = info
        self._node = node
        self._around = around
        self._clock = clock
        self._settings = {name: str(value) for name, value in dataclasses.asdict(settings).items()}
        self._examine = examine
        self._one_at_a_time = asyncio.Lock()

    async def DiagnoseController(
        self, request: doctor_pb2.DiagnoseControllerRequest, context: Context
    ) -> doctor_pb2.DiagnoseControllerResponse:
        members = await self._members()
        node, around = self._node, self._around
        answer = doctor_pb2.DiagnoseControllerResponse(
            id=self._info.controller_id,
            grpc_address=self._info.grpc_address,
            version=self._info.version,
            not_ready=around.not_ready() or "",
            draining=node.draining,
            in_drill=node.in_drill,
            database_ok=around.database_ok(),
            ring_digest=node.ring.digest,
            ring_members=node.ring.members,
            members=members,
            health=node.health,
            queues=around.queues(),
            settings=self._settings,
            runners=sorted(around.runners()),
            zone_data=self._info.zone_data,
            certificate_left_ms=around.certificate_left_ms(),
            certificate_problem=around.certificate_problem(),
            issuer_problem=around.issuer_problem(),
            secrets_key=around.secrets_key(),
            secrets_problem=around.secrets_problem(),
        )
        self._tell_times(answer)
        return answer

    async def DiagnoseDatabase(
        self, request: doctor_pb2.DiagnoseDatabaseRequest, context: Context
    ) -> doctor_pb2.DiagnoseDatabaseResponse:
        async with self._one_at_a_time:
            findings = await self._examine()
        return doctor_pb2.DiagnoseDatabaseResponse(
            findings=[doctor_pb2.Diagnosis(**finding._asdict()) for finding in findings]
        )

    # docs/decisions/0036: a one-way cut is visible only to calls
    async def _members(self) -> list[doctor_pb2.SeenMember]:
        others = [member for member in self._node.members() if member.gossips]
        own = self._info.controller_id
        silent = await self._around.unreachable(member.address for member in others if member.member_id != own)
        return [
            doctor_pb2.SeenMember(
                id=member.member_id,
                grpc_address=self._node.client_address(member.member_id) or member.address,
                status=status_word(member),
                unreachable=silent.get(member.address, "") if member.gossips and member.member_id != own else "",
            )
            for member in sorted(self._node.members(), key=lambda member: member.member_id)
        ]

    def _tell_times(self, answer: doctor_pb2.DiagnoseControllerResponse) -> None:
        """Fill in its lease and its clock, all as of one instant."""
        node, now_ns, wall_us = self._node, self._clock.now_ns(), self._clock.wall_us()
        left_ns = node.lease_until_ns - now_ns
        answer.lease_valid = left_ns > 0
        answer.lease_left_ms = left_ns // _NS_PER_MS
        if left_ns > 0 and node.lease_since_ns is not None:
            answer.lease_held_ms = (now_ns - node.lease_since_ns) // _NS_PER_MS
        if not node.clock.known:
            return
        database_us = node.clock.now_us(now_ns)
        database_time = timestamp(database_us)
        assert database_time is not None
        answer.database_time.CopyFrom(database_time)
        answer.clock_error_us = node.clock.error_us(now_ns)
        answer.wall_clock_offset_us = wall_us - database_us
        answer.clock_steps = sum(step.noticed_us > database_us - _STEPS_WITHIN_US for step in node.clock.steps)
