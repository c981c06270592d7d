"""Drills in PostgreSQL: a column of `controllers`."""

from cronring.controller.ports.drills import Drill
from cronring.controller.store.pool import Database
from cronring.sql.parameters import ClaimAgain, HoldDrill


class PostgresDrills:
    """cronring.controller.ports.drills.Drills."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def hold_drill(self, controller_id: str, for_ms: int, forced: bool) -> Drill:
        """See cronring.controller.ports.drills.Drills."""
        records = await self._database.fetch(HoldDrill(controller_id=controller_id, for_ms=for_ms, forced=forced))
        return Drill(*records[0])

    async def claim_again(self, controller_id: str) -> None:
        """See cronring.controller.ports.drills.Drills."""
        await self._database.fetch(ClaimAgain(controller_id=controller_id))
