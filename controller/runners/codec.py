"""Runner streams between the wire (runner/v1) and the core; for runs and reports see protos/executions.py."""

from typing import Final

from cronring.controller.core.model import RunnerInfo
from cronring.controller.core.node.events import RunnerBeat
from cronring.protos.executions import MalformedError
from cronring.protos.runner.v1 import runner_pb2 as wire
from cronring.schema.lanes import Grant, LaneDemand, LaneKind

IDENTIFIER_LENGTH_MAX: Final = 200
OUT_OF_REACH_MAX: Final = 100
MODULES_MAX: Final = 1_000
GRANTED_MAX: Final = 2**62
PLACES_MAX: Final = 1_000_000
CLAIM_US_MAX: Final = 2**32 - 1
_KINDS: Final = {int(kind): kind for kind in LaneKind}


def addresses(peers: tuple[tuple[str, str], ...]) -> list[str]:
    """`peers`: (id, address)."""
    return [address for _, address in peers]


def decode_beat(runner_id: str, beat: wire.Beat) -> RunnerBeat:
    """Raises MalformedError."""
    out_of_reach = tuple(beat.out_of_reach)
    lengths = range(1, IDENTIFIER_LENGTH_MAX + 1)
    if len(out_of_reach) > OUT_OF_REACH_MAX or any(len(each) not in lengths for each in out_of_reach):
        raise MalformedError("a beat names controllers that can be none")
    return RunnerBeat(runner_id, beat.sequence, beat.renew, beat.draining, beat.running, out_of_reach)


def decode_hello(hello: wire.Hello, deployments: tuple[str, ...]) -> RunnerInfo:
    """The runner, hosting `deployments`: one for each of its modules, "" for what was refused."""
    sync_verbs = tuple(
        (deployment, frozenset(verb.name for verb in hosted.schema.verbs if not verb.is_async))
        for deployment, hosted in zip(deployments, hello.modules, strict=True)
        if deployment
    )
    names = tuple(deployment for deployment in deployments if deployment)
    return RunnerInfo(
        hello.runner_id, hello.hostname, hello.pid, hello.version, names, sync_verbs,
        min(hello.sync_places, PLACES_MAX), min(hello.async_places, PLACES_MAX),
    )  # fmt: skip


def decode_grants(grants: wire.Grants) -> list[Grant]:
    """Those of lanes that this version knows."""
    return [
        Grant(grant.deployment, kind, grant.epoch, min(grant.granted, GRANTED_MAX), grant.short, grant.keep)
        for grant in grants.grants
        if (kind := _KINDS.get(grant.lane)) is not None
    ]


def encode_demand(demand: LaneDemand) -> wire.LaneDemand:
    return wire.LaneDemand(
        deployment=demand.deployment,
        lane=wire.Lane.ValueType(demand.kind),
        epoch=demand.epoch,
        seen=demand.seen,
        returned=demand.returned,
        wanted=demand.wanted,
        standby=demand.standby,
        rank_us=demand.rank_us,
        claim_us=min(demand.claim_us, CLAIM_US_MAX),
        closed=demand.closed,
    )


def check_hello(hello: wire.Hello) -> None:
    """Raises MalformedError for what can't be a runner's introduction."""
    if not hello.runner_id:
        raise MalformedError("hello.runner_id must not be empty")
    for field in ("runner_id", "hostname", "version"):
        value: str = getattr(hello, field)
        if len(value) > IDENTIFIER_LENGTH_MAX or not value.isprintable():
            raise MalformedError(f"hello.{field} must be printable, with {IDENTIFIER_LENGTH_MAX} characters at most")
    if len(hello.modules) > MODULES_MAX:
        raise MalformedError(f"hello.modules has {len(hello.modules)} modules; at most {MODULES_MAX} are allowed")
    if hello.pid > 2**31 - 1:
        raise MalformedError(f"hello.pid is {hello.pid}, which is no process id")
