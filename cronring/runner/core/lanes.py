"""How many runs of a module this runner runs at once, by the children that run them."""

from typing import NamedTuple

from cronring.schema.execution import Run
from cronring.schema.lanes import LaneKind


class ModuleLanes(NamedTuple):
    """The lanes of one module: which verbs are sync, and how many runs each lane may have at once."""

    sync_verbs: frozenset[str]
    sync: int
    concurrent: int
    quota: int

    def kind(self, run: Run) -> LaneKind:
        """The lane of a run. It must agree with the child that ModuleHost.start chooses."""
        if run.verb in self.sync_verbs:
            return LaneKind.SYNC
        return LaneKind.QUOTA if run.has_quota else LaneKind.ASYNC

    def places(self, kind: LaneKind) -> int:
        return {LaneKind.SYNC: self.sync, LaneKind.ASYNC: self.concurrent, LaneKind.QUOTA: self.quota}[kind]
