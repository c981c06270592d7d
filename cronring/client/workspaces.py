"""Calls about workspaces: values of the label `workspace`."""

import builtins
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from cronring.client.channel import Failover
from cronring.client.paging import follow
from cronring.protos.cronring.v1 import workspaces_pb2
from cronring.protos.cronring.v1.workspaces_pb2_grpc import WorkspacesStub

if TYPE_CHECKING:
    from cronring.protos.cronring.v1.workspaces_pb2_grpc import WorkspacesAsyncStub  # there in the stubs only

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Workspace:
    """`running`: executions; in lists, jobs that run. `waiting`: runs beside schedules. `messages`: of queues.

    In lists the last two are 0. A message that an execution waits for counts with that.
    """

    namespace: str
    workspace: str
    jobs: int
    paused: int
    running: int
    waiting: int
    messages: int


@dataclass(frozen=True, slots=True)
class WorkspaceDeleted:
    """`found`: as it was before. `deleted`: jobs. `left`: what is there now, as runs that have not stopped yet.

    `messages`: deleted ones of queues, with dead letters. `done`: no jobs and no messages are left.
    """

    found: Workspace
    deleted: int
    left: Workspace
    messages: int = 0
    done: bool = True


class WorkspaceCalls:
    """List, get, delete. All may be repeated. To pause or resume one: `jobs.control` by its label."""

    def __init__(self, failover: Failover) -> None:
        self._failover = failover

    async def list(self, namespace: str = "") -> builtins.list[Workspace]:
        """Those that have jobs, messages or dead letters, by namespace and name. `namespace`: "" for all."""

        async def fetch(page_size: int, token: str) -> tuple[builtins.list[Workspace], str]:
            request = workspaces_pb2.ListWorkspacesRequest(page_size=page_size, page_token=token, namespace=namespace)
            answer = await self._unary(lambda stub, timeout: stub.ListWorkspaces(request, timeout=timeout))
            return [_workspace(each) for each in answer.workspaces], answer.next_page_token

        return await follow(fetch, None)

    async def get(self, workspace: str, namespace: str = "default") -> Workspace:
        """What there is of it; it may be nothing. Raises Invalid."""
        request = workspaces_pb2.GetWorkspaceRequest(namespace=namespace, workspace=workspace)
        return _workspace(await self._unary(lambda stub, timeout: stub.GetWorkspace(request, timeout=timeout)))

    async def delete(
        self,
        workspace: str,
        namespace: str = "default",
        *,
        expected: int | None = None,
        dry_run: bool = False,
        by: str = "",
        note: str = "",
    ) -> WorkspaceDeleted:
        """Its schedules end, what waits goes, what runs is told to stop, and its messages and jobs are removed.

        `expected`: with any other number of jobs nothing is done. Raises Invalid, Refused, and Conflict where its jobs
        can't be ended. What was cut in the middle goes on when it is called again. So does what isn't `done`, as
        consumers have its messages locked: nobody waits for them here.
        """
        request = workspaces_pb2.DeleteWorkspaceRequest(
            namespace=namespace, workspace=workspace, dry_run=dry_run, expected=expected, requested_by=by, note=note
        )
        answer = first = await self._delete(request)
        deleted, messages = first.deleted, first.messages
        request.ClearField("expected")
        while not answer.done and (answer.ended or answer.deleted or answer.messages):
            answer = await self._delete(request)
            deleted += answer.deleted
            messages += answer.messages
        return WorkspaceDeleted(_workspace(first.found), deleted, _workspace(answer.left), messages, answer.done)

    async def _delete(self, request: workspaces_pb2.DeleteWorkspaceRequest) -> workspaces_pb2.DeleteWorkspaceResponse:
        return await self._change(
            lambda stub, timeout: stub.DeleteWorkspace(request, timeout=timeout),
            repeatable=not request.HasField("expected"),
        )

    async def _change(
        self, call: "Callable[[WorkspacesAsyncStub, float], Awaitable[Answer]]", *, repeatable: bool
    ) -> Answer:
        return await self._failover.change(
            lambda channel: call(WorkspacesStub(channel), self._failover.timeout_s),
            "`cronring workspaces list`",
            repeatable=repeatable,
        )

    async def _unary(self, call: "Callable[[WorkspacesAsyncStub, float], Awaitable[Answer]]") -> Answer:
        return await self._failover.unary(lambda channel: call(WorkspacesStub(channel), self._failover.timeout_s))


def _workspace(message: workspaces_pb2.Workspace) -> Workspace:
    return Workspace(
        message.namespace, message.workspace, message.jobs, message.paused, message.running, message.waiting,
        message.messages,
    )  # fmt: skip
