"""The lanes of a runner, and what it and its controllers tell each other of their places (protos/runner/v1)."""

from enum import IntEnum
from typing import NamedTuple


class LaneKind(IntEnum):
    """Which children run it."""

    SYNC = 1  # one for each run
    ASYNC = 2  # one for all
    QUOTA = 3  # of async verbs with a quota (memory_limit, cpu_limit): one for each run


LaneKey = tuple[str, LaneKind]  # the deployment's key, and the kind


class Grant(NamedTuple):
    """The places of one controller in a lane. Counts are since the beginning of the epoch."""

    deployment: str
    kind: LaneKind
    epoch: int
    granted: int
    short: bool
    keep: int  # when short: how many unused places the controller may keep


class LaneDemand(NamedTuple):
    """What one controller would send to a lane if it had places, and which of its places it has seen and given back."""

    deployment: str
    kind: LaneKind
    epoch: int  # that `seen` and `returned` are counted in
    seen: int
    returned: int
    wanted: int
    standby: int  # as `wanted`, for ticks of which it is the backup
    rank_us: int  # of the most urgent of `wanted`
    claim_us: int
    closed: bool  # it can't claim now: it wants none, and keeps none
