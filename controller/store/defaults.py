"""The cluster's defaults in PostgreSQL: one row, which claims and reads of jobs look up by themselves."""

from cronring.controller.ports.defaults import Decide, DefaultsRow
from cronring.controller.services.audit_changes import of_defaults
from cronring.controller.store.pool import Database
from cronring.controller.store.recording import record
from cronring.controller.store.rows import storable
from cronring.sql.parameters import GetDefaults, LockDefaults, NotifyJobs, SetDefaults


class PostgresDefaults:
    """cronring.controller.ports.defaults.DefaultsStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get_defaults(self) -> DefaultsRow:
        """See cronring.controller.ports.defaults.DefaultsStore."""
        return DefaultsRow._make((await self._database.fetch(GetDefaults()))[0])

    async def set_defaults(self, decide: Decide, by: str, note: str = "") -> DefaultsRow:
        """See cronring.controller.ports.defaults.DefaultsStore."""
        async with self._database.transaction("setting defaults") as transaction:
            before = DefaultsRow._make((await transaction.fetch(LockDefaults()))[0])
            wanted = decide(before)
            changes = of_defaults(before, wanted)
            if not changes:
                return before
            setting = SetDefaults(
                timeout_ms=wanted.timeout_ms, late_after_ms=wanted.late_after_ms, retries=wanted.retries, actor=by,
                note=storable(note),
            )  # fmt: skip
            after = DefaultsRow._make((await transaction.fetch(setting))[0])
            await record(transaction, changes)
            await transaction.fetch(NotifyJobs(payload=""))
            return after
