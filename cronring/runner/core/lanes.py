"""How many runs of a module this runner runs at once, by the children that run them."""

from typing import NamedTuple

from cronring.schema.execution import Run
from cronring.schema.lanes import LaneKind


class ModuleLanes(NamedTuple):
    """One module's: which of its verbs are sync, and how many runs there may be at once in each lane."""

    sync_verbs: frozenset[str]
    sync: int
    concurrent: int
    quota: int

    def kind(self, run: Run) -> LaneKind:
        """As ModuleHost.start sends it."""
        if run.verb in self.sync_verbs:
            return LaneKind.SYNC
        return LaneKind.QUOTA if run.has_quota else LaneKind.ASYNC

    def places(self, kind: LaneKind) -> int:
        return {LaneKind.SYNC: self.sync, LaneKind.ASYNC: self.concurrent, LaneKind.QUOTA: self.quota}[kind]
