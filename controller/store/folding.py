"""Ended executions are added to their jobs' figures, each once, by id (docs/decisions/0068)."""

from typing import Final

from cronring.controller.ports.statistics import Folded
from cronring.controller.store.placing import Fetch
from cronring.controller.store.pool import Database
from cronring.sql.parameters import FoldFigures, GetLastIds, MoveFolding, TakeFolding

AT_ONCE: Final = 20_000  # executions: a fraction of a second


async def fold_figures(database: Database) -> Folded | None:
    """One round, in one transaction. None: another controller is folding. Raises StoreUnavailable and StoreError."""
    async with database.transaction("folding figures") as transaction:
        return await fold(transaction.fetch)


async def fold(fetch: Fetch, at_once: int = AT_ONCE) -> Folded | None:
    """The same, in the caller's transaction."""
    ((last_id, *_),) = await fetch(GetLastIds())  # must be first, before this transaction has an id
    taken = await fetch(TakeFolding(limit=at_once))
    if not taken:
        return None
    ((folded_id, until_id),) = taken
    ((ended,),) = await fetch(FoldFigures(folded_id=folded_id, until_id=until_id))
    ((behind,),) = await fetch(MoveFolding(until_id=until_id, last_id=last_id))
    return Folded(ended, behind)
