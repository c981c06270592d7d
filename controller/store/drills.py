"""Drills in PostgreSQL: a column of `controllers`."""

from cronring.controller.ports.drills import Drill
from cronring.controller.services.audit_changes import of_controller
from cronring.controller.store.pool import Database
from cronring.controller.store.recording import record
from cronring.sql.parameters import ClaimAgain, HoldDrill


class PostgresDrills:
    """cronring.controller.ports.drills.Drills."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def hold_drill(self, controller_id: str, for_ms: int, forced: bool) -> Drill:
        """See cronring.controller.ports.drills.Drills."""
        async with self._database.transaction("holding a drill") as transaction:
            holding = HoldDrill(controller_id=controller_id, for_ms=for_ms, forced=forced)
            drill = Drill(*(await transaction.fetch(holding))[0])
            if drill.noted:
                details = {"drill_for_ms": for_ms, "forced": forced}
                await record(transaction, of_controller(controller_id, details))
            else:
                transaction.unchanged = True
            return drill

    async def claim_again(self, controller_id: str) -> None:
        """See cronring.controller.ports.drills.Drills."""
        await self._database.fetch(ClaimAgain(controller_id=controller_id))
