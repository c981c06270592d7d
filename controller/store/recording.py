"""Who changed what: rows of cron_audit_log, in the transaction of the change. docs/decisions/0071"""

from collections.abc import Iterable
from typing import NamedTuple

from cronring.controller.ports.audit_log import Change
from cronring.controller.ports.caller import call_in_hand
from cronring.controller.services.audit_changes import Changes, canonical
from cronring.controller.store.pool import Database, Transaction
from cronring.controller.store.rows import storable
from cronring.controller.store.slices import beside
from cronring.schema.identity import Kind, Principal
from cronring.sql.parameters import GetRole, RecordChanges


class Entries(NamedTuple):
    """Changes as they are kept: parallel columns."""

    namespaces: list[str]
    subjects: list[str]
    befores: list[str | None]
    afters: list[str | None]


def entries_of(changes: Iterable[Changes]) -> Entries:
    """For many changes this takes a while: call it in a thread."""
    found: list[Change] = [change for some in changes for change in some]
    return Entries(
        [each.namespace for each in found],
        [each.subject for each in found],
        [canonical(each.before) for each in found],
        [canonical(each.after) for each in found],
    )


async def record(transaction: Transaction, *changes: Changes, by: str = "") -> None:
    """Keep what the call in hand has changed, by one statement for any number of changes.

    `by`: who did it, if only the change itself proves that (a login). "": the caller.
    """
    await record_entries(transaction, await beside(len(changes), entries_of, changes), by)


async def record_entries(transaction: Transaction, entries: Entries, by: str = "") -> None:
    """As `record`, for changes that `entries_of` has converted."""
    if not entries.subjects:
        return
    call = call_in_hand()
    await transaction.fetch(
        RecordChanges(
            principal=by or str(call.principal),
            method=call.method,
            origin=storable(call.origin),
            remark=storable(call.remark),
            controller_id=transaction.controller_id,
            **entries._asdict(),
        )
    )


async def database_principal(database: Database) -> Principal:
    """The principal of a program that works on the database itself: the role of its session."""
    role, *_ = (await database.fetch(GetRole()))[0]
    return Principal(Kind.DATABASE, role)
