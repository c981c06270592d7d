"""Who changed what: rows of cron_audit_log, in the transaction of the change. docs/decisions/0071"""

from collections.abc import Sequence

from cronring.controller.ports.audit_log import Change
from cronring.controller.ports.caller import call_in_hand
from cronring.controller.services.audit_changes import Changes, canonical
from cronring.controller.store.pool import Database, Transaction
from cronring.controller.store.rows import storable
from cronring.controller.store.slices import beside
from cronring.schema.identity import Kind, Principal
from cronring.sql.parameters import GetRole, RecordChanges


async def record(transaction: Transaction, *changes: Changes, by: str = "") -> None:
    """Keep what the call in hand has changed: one statement, whatever the number; none for no change.

    `by`: who it was, where what they have changed is what proves it: a login. "": who makes the call.
    """
    found = [change for some in changes for change in some]
    if not found:
        return
    call = call_in_hand()
    befores, afters = await beside(len(found), _texts, found)
    await transaction.fetch(
        RecordChanges(
            principal=by or str(call.principal),
            method=call.method,
            origin=storable(call.origin),
            remark=storable(call.remark),
            controller_id=transaction.controller_id,
            namespaces=[each.namespace for each in found],
            subjects=[each.subject for each in found],
            befores=befores,
            afters=afters,
        )
    )


def _texts(changes: Sequence[Change]) -> tuple[list[str | None], list[str | None]]:
    return [canonical(each.before) for each in changes], [canonical(each.after) for each in changes]


async def database_principal(database: Database) -> Principal:
    """Who works on the database itself: the role of PostgreSQL by which it was opened."""
    role, *_ = (await database.fetch(GetRole()))[0]
    return Principal(Kind.DATABASE, role)
