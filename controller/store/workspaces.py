"""Workspaces in PostgreSQL. Their jobs are found by the index of labels, and locked in order of their ids."""

import json
from typing import Final

from cronring.controller.core.orders.orders import Cancel
from cronring.controller.errors import Conflict
from cronring.controller.ports.many import JobDone, Who
from cronring.controller.ports.reads import Namespaces
from cronring.controller.ports.workspaces import LABEL, WorkspaceRow
from cronring.controller.services.audit_changes import of_workspace
from cronring.controller.store.locked import Locked, lock_jobs
from cronring.controller.store.many import delete_all
from cronring.controller.store.ordering import order_locked
from cronring.controller.store.pool import Database, Transaction
from cronring.controller.store.recording import record
from cronring.sql.parameters import CountWorkspace, DropWorkspaceMessages, FindWorkspaceJobs, ListWorkspaces

AT_ONCE: Final = 100  # jobs whose rows are locked together; claims skip locked rows, and come back
MESSAGES_AT_ONCE: Final = 1_000


class PostgresWorkspaces:
    """cronring.controller.ports.workspaces.Workspaces."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list_workspaces(
        self, namespace: str | None, namespaces: Namespaces, after: tuple[str, str], limit: int
    ) -> list[WorkspaceRow]:
        """See cronring.controller.ports.workspaces.Workspaces."""
        wanted = ListWorkspaces(
            namespace=namespace,
            namespaces=namespaces,
            after_namespace=after[0],
            after_workspace=after[1],
            limit=limit,
        )
        return [WorkspaceRow(*record) for record in await self._database.fetch(wanted)]

    async def get_workspace(self, namespace: str, workspace: str) -> WorkspaceRow:
        """See cronring.controller.ports.workspaces.Workspaces."""
        asked = CountWorkspace(labels=_labels(workspace), namespace=namespace, workspace=workspace)
        (counts,) = await self._database.fetch(asked)
        return WorkspaceRow(namespace, workspace, *counts)

    async def note_deletion(self, found: WorkspaceRow) -> None:
        """See cronring.controller.ports.workspaces.Workspaces."""
        async with self._database.transaction("deleting a workspace") as transaction:
            await record(transaction, of_workspace(found))

    async def end_jobs(self, namespace: str, workspace: str, by: str, note: str) -> int:
        """See cronring.controller.ports.workspaces.Workspaces."""
        async with self._database.transaction("ending jobs of a workspace") as transaction:
            rows = await _locked(transaction, namespace, workspace, going=True)
            done = await order_locked(transaction, rows, Cancel(note), by, dry_run=False)
            refused = [each for each in done if isinstance(each, Conflict)]
            if refused and len(refused) == len(done):  # the next call would find only these again, for ever
                raise refused[0]
            transaction.unchanged = not rows
            return len(done) - len(refused)

    async def drop_messages(self, namespace: str, workspace: str) -> int:
        """See cronring.controller.ports.workspaces.Workspaces."""
        asked = DropWorkspaceMessages(namespace=namespace, workspace=workspace, limit=MESSAGES_AT_ONCE)
        dropped: int = (await self._database.fetch(asked))[0][0]
        return dropped

    async def delete_jobs(self, namespace: str, workspace: str, by: str, note: str) -> int:
        """See cronring.controller.ports.workspaces.Workspaces."""
        async with self._database.transaction("deleting jobs of a workspace") as transaction:
            rows = await _locked(transaction, namespace, workspace, going=False)
            keys = [row.job.key for row in rows]
            gone = await delete_all(transaction, keys, Who(by, note), labels={LABEL: workspace}, whole=False)
            transaction.unchanged = not rows
            return sum(isinstance(each, JobDone) for each in gone)


def _labels(workspace: str) -> str:
    return json.dumps({LABEL: workspace})


async def _locked(transaction: Transaction, namespace: str, workspace: str, *, going: bool) -> list[Locked]:
    """Lock a few of its jobs. A job that got another workspace while this waited for the lock is left out."""
    wanted = FindWorkspaceJobs(labels=_labels(workspace), namespace=namespace, going=going, limit=AT_ONCE)
    found = [record[0] for record in await transaction.fetch(wanted)]
    rows = await lock_jobs(transaction, found) if found else []
    return [row for row in rows if row.spec.labels.get(LABEL) == workspace]
