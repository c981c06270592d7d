"""The cluster's defaults, in memory; see controller/store/defaults.py."""

from cronring.controller.ports.defaults import Decide, DefaultsRow
from cronring.controller.services.audit_changes import of_defaults
from cronring.controller.store.memory.tables import MemoryTables


class MemoryDefaults(MemoryTables):
    """Implements cronring.controller.ports.defaults.DefaultsStore."""

    async def get_defaults(self) -> DefaultsRow:
        return self.defaults

    async def set_defaults(self, decide: Decide, by: str, note: str = "") -> DefaultsRow:
        before = self.defaults
        wanted = decide(before)
        changes = of_defaults(before, wanted)
        if not changes:
            return before
        self.defaults = wanted._replace(
            revision=before.revision + 1, changed_at=self.now_us(), changed_by=by, note=note
        )
        self._record(changes)
        self.on_notify()
        return self.defaults
