"""Figures of jobs are folded out of executions that have ended: each once, by id (docs/decisions/0068)."""

from typing import Final

from cronring.controller.ports.statistics import Folded
from cronring.controller.store.placing import Fetch
from cronring.controller.store.pool import Database
from cronring.sql.parameters import FoldFigures, GetLastIds, MoveFolding, TakeFolding

AT_ONCE: Final = 20_000  # executions: a fraction of a second


async def fold_figures(database: Database) -> Folded | None:
    """One round, one transaction; None: somebody else is at it. Raises StoreUnavailable and StoreError."""
    async with database.transaction("folding figures") as transaction:
        return await fold(transaction.fetch)


async def fold(fetch: Fetch, at_once: int = AT_ONCE) -> Folded | None:
    """The same in a transaction of the caller's."""
    ((last_id, *_),) = await fetch(GetLastIds())  # first: before this transaction has an id
    taken = await fetch(TakeFolding(limit=at_once))
    if not taken:
        return None
    ((folded_id, until_id),) = taken
    ((ended,),) = await fetch(FoldFigures(folded_id=folded_id, until_id=until_id))
    ((behind,),) = await fetch(MoveFolding(until_id=until_id, last_id=last_id))
    return Folded(ended, behind)
