"""Calls of verbs in PostgreSQL. The pool keeps each of them at the end of its transaction."""

from contextlib import AbstractContextManager

from cronring.controller.ports.verb_calls import VerbCall, keeping
from cronring.controller.store.keeping import found_standing
from cronring.controller.store.pool import Database


class PostgresVerbCalls:
    """cronring.controller.ports.verb_calls.VerbCalls."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def standing(self, call: VerbCall) -> tuple[str, bool]:
        return await found_standing(self._database.fetch, call)

    def keeping(self, call: VerbCall) -> AbstractContextManager[None]:
        return keeping(call)
