"""A verb's call is kept in the transaction of its change, whatever that changes. docs/decisions/0098"""

from collections.abc import Awaitable, Callable

import asyncpg

from cronring.controller.ports.verb_calls import CallDone, VerbCall
from cronring.sql.parameters import GetVerbCall, KeepVerbCall
from cronring.sql.records import Statement

Fetch = Callable[[Statement], Awaitable[list[asyncpg.Record]]]


async def keep(fetch: Fetch, call: VerbCall) -> None:
    """Must be the last statement of a transaction: it locks an execution, and jobs are locked before executions. Raises
    CallDone, RunOver.
    """
    if not await fetch(KeepVerbCall(**call._asdict())):
        await found_standing(fetch, call)
        raise CallDone(f"call {call.number} of execution {call.execution_id} was done before")


async def found_standing(fetch: Fetch, call: VerbCall) -> tuple[str, bool]:
    """See cronring.controller.ports.verb_calls.VerbCalls.standing."""
    records = await fetch(GetVerbCall(execution_id=call.execution_id, number=call.number))
    for job, runner_id, runs, done in records:
        if runner_id == call.runner_id and (runs or done):
            return job, done
    raise call.over()
