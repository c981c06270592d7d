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
        """It is being deleted, in the audit log: beside what is done to its jobs."""
        ...

    async def end_jobs(self, namespace: str, workspace: str, by: str, note: str) -> int:
        """A few of its jobs end: no tick comes any more, what waits goes, what runs is told to stop. 0: all have.

        Raises Conflict where none of those that are left may be ended, as a newer release wrote them.
        """
        ...

    async def drop_messages(self, namespace: str, workspace: str) -> int:
        """Some of its messages of queues go, and dead letters. 0: there are no more, but for those being ended."""
        ...

    async def delete_jobs(self, namespace: str, workspace: str, by: str, note: str) -> int:
        """A few of its jobs are removed. 0: there are no more."""
        ...
