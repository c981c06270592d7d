"""Calls of verbs, in memory; see controller/store/verb_calls.py."""

import contextlib
from collections.abc import Iterator

from cronring.controller.ports.verb_calls import CallDone, VerbCall
from cronring.controller.store.memory.tables import MemoryTables


class MemoryVerbCalls(MemoryTables):
    """Implements cronring.controller.ports.verb_calls.VerbCalls."""

    async def standing(self, call: VerbCall) -> tuple[str, bool]:
        row = self.executions.get(call.execution_id)
        done = (call.execution_id, call.number) in self.verb_calls
        if row is None or row.runner_id != call.runner_id or not (done or call.execution_id in self.unfinished):
            raise call.over()
        return row.job.key, done

    @contextlib.contextmanager
    def keeping(self, call: VerbCall) -> Iterator[None]:
        """Nothing comes between what is looked at and what is changed, as no method here waits."""
        row = self.unfinished.get(call.execution_id)
        if (call.execution_id, call.number) in self.verb_calls:
            raise CallDone(f"call {call.number} of execution {call.execution_id} was done before")
        if row is None or row.runner_id != call.runner_id:
            raise call.over()
        yield
        self.verb_calls.add((call.execution_id, call.number))
