"""Workspaces: values of the label `workspace`, in a namespace."""

from typing import Final, NamedTuple, Protocol

from cronring.controller.ports.reads import Namespaces

LABEL: Final = "workspace"


class WorkspaceRow(NamedTuple):
    """`running`: executions; in lists, jobs that run. `waiting`: activations. `messages`: of queues, with dead letters.

    In lists the last two are 0. A message that an execution waits for counts with that.
    """

    namespace: str
    workspace: str
    jobs: int
    paused: int
    running: int
    waiting: int = 0
    messages: int = 0


class Workspaces(Protocol):
    """Each method is one statement or transaction. Raises StoreUnavailable and StoreError as
    controller.ports.store.Store.
    """

    async def list_workspaces(
        self, namespace: str | None, namespaces: Namespaces, after: tuple[str, str], limit: int
    ) -> list[WorkspaceRow]:
        """Those that have jobs, messages or dead letters, by namespace and name. `after`: a namespace and a name."""
        ...

    async def get_workspace(self, namespace: str, workspace: str) -> WorkspaceRow:
        """What there is of it; it may be nothing."""
        ...

    async def note_deletion(self, found: WorkspaceRow) -> None:
        """Write into the audit log that it is being deleted. Changes of its jobs are written separately."""
        ...

    async def end_jobs(self, namespace: str, workspace: str, by: str, note: str) -> int:
        """Cancel a few of its jobs: no more ticks, nothing waits, runs are told to stop. Returns how many.

        Raises Conflict if none of the remaining ones may be cancelled, as a newer release wrote them.
        """
        ...

    async def drop_messages(self, namespace: str, workspace: str) -> int:
        """Remove some of its messages and dead letters. Returns how many; 0: only some that are being ended stay."""
        ...

    async def delete_jobs(self, namespace: str, workspace: str, by: str, note: str) -> int:
        """Remove a few of its jobs. Returns how many; 0: there are no more."""
        ...
