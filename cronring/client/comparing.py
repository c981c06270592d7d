"""Two versions of a module side by side: what a change from one to the other does to ticks."""

from dataclasses import dataclass
from datetime import datetime

from cronring.client import convert
from cronring.client.sets import TickDifference, tick_difference
from cronring.protos.cronring.v1 import deployments_pb2


@dataclass(frozen=True, slots=True)
class VerbDifference:
    """`change`: added, removed, changed, or same where only `changed_fields` of its description differ."""

    verb: str
    change: str
    ticks: TickDifference
    changed_fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """Of verbs with a schedule: those that differ, and how many are the same. `from_key` "": nothing was active."""

    key: str
    from_key: str
    verbs: tuple[VerbDifference, ...]
    same: int
    from_at: datetime | None
    until_at: datetime | None


def compared(message: deployments_pb2.CompareDeploymentsResponse) -> Compared:
    """What CompareDeployments answered."""
    return Compared(
        message.key, message.from_key, tuple(map(_verb, message.verbs)), message.same,
        convert.instant(message.from_at), convert.instant(message.until_at),
    )  # fmt: skip


def _verb(message: deployments_pb2.VerbDifference) -> VerbDifference:
    return VerbDifference(message.verb, message.change, tick_difference(message.ticks), tuple(message.changed_fields))
