"""Who did what, and why: a row of cron_actions in the transaction of what was done."""

import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from cronring.controller.ports.caller import call_in_hand
from cronring.controller.store.pool import Transaction
from cronring.sql.parameters import AddActions


class Action(NamedTuple):
    """On a job, a deployment, an execution (of a job) or a template. Instants in `details` are ISO 8601 in UTC."""

    action: str  # such as "pause"
    actor: str
    note: str = ""
    job_id: int | None = None
    deployment_id: int | None = None
    execution_id: int | None = None
    details: Mapping[str, object] = MappingProxyType({})
    template: str | None = None  # its key


async def add_actions(transaction: Transaction, actions: Iterable[Action], at: int | None = None) -> None:
    """Keep what was done. `at`: PostgreSQL's time past any wait for locks; None: when the transaction began."""
    found, asked = list(actions), call_in_hand().details
    if not found:
        return
    await transaction.fetch(
        AddActions(
            at=at,
            job_ids=[each.job_id for each in found],
            deployment_ids=[each.deployment_id for each in found],
            execution_ids=[each.execution_id for each in found],
            actions=[each.action for each in found],
            actors=[each.actor for each in found],
            notes=[each.note for each in found],
            details=[json.dumps({**each.details, **asked}) for each in found],
            templates=[each.template for each in found],
        )
    )
