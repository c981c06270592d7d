"""cronring.v1.Workspaces: list, get, delete."""

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple

from cronring.controller.api.paging import Pages, page_size
from cronring.controller.api.problems import InvalidRequest, Violations
from cronring.controller.api.requests import Context, actor, name, note
from cronring.controller.api.scope import namespaces, require
from cronring.controller.api.token_box import TokenBox
from cronring.controller.core.node.events import Event, JobsNotified
from cronring.controller.errors import Conflict
from cronring.controller.ports.workspaces import LABEL, WorkspaceRow, Workspaces
from cronring.protos.cronring.v1 import workspaces_pb2, workspaces_pb2_grpc
from cronring.schema.identity import Permission
from cronring.schema.keys import DEFAULT_NAMESPACE
from cronring.schema.labels import label_faults
from cronring.schema.validate import namespace_fault

CALL_S: Final = 2.0  # one call does as much as fits; thousands of jobs take longer than callers wait


class WorkspacesService(workspaces_pb2_grpc.WorkspacesServicer):
    """`put` tells this controller's own node of changes at once."""

    def __init__(self, workspaces: Workspaces, box: TokenBox, put: Callable[[Event], None]) -> None:
        self._workspaces = workspaces
        self._box = box
        self._put = put

    async def ListWorkspaces(
        self, request: workspaces_pb2.ListWorkspacesRequest, context: Context
    ) -> workspaces_pb2.ListWorkspacesResponse:
        named, size = name("namespace", request.namespace), page_size(request)
        pages = Pages(self._box, "ListWorkspaces", named)
        namespace, _, workspace = pages.text_cursor(request.page_token).partition("/")
        rows = await self._workspaces.list_workspaces(
            named or None, namespaces(Permission.VIEW, named), (namespace, workspace), size + 1
        )
        page = rows[:size]
        return workspaces_pb2.ListWorkspacesResponse(
            workspaces=map(workspace_message, page),
            next_page_token=pages.token(f"{page[-1].namespace}/{page[-1].workspace}") if len(rows) > size else "",
        )

    async def GetWorkspace(
        self, request: workspaces_pb2.GetWorkspaceRequest, context: Context
    ) -> workspaces_pb2.Workspace:
        namespace, workspace = _named(request.namespace, request.workspace)
        require(Permission.VIEW, namespace)
        return workspace_message(await self._workspaces.get_workspace(namespace, workspace))

    async def DeleteWorkspace(
        self, request: workspaces_pb2.DeleteWorkspaceRequest, context: Context
    ) -> workspaces_pb2.DeleteWorkspaceResponse:
        by, why = actor(request.requested_by, context), note("note", request.note)
        of = _named(request.namespace, request.workspace)
        require(Permission.OPERATE, of[0])
        found = await self._workspaces.get_workspace(*of)
        if request.HasField("expected") and found.jobs != request.expected:
            raise Conflict(f"{of[1]} has {found.jobs} jobs, and {request.expected} are expected; nothing was done")
        gone, left = _Gone(), found
        if (found.jobs or found.messages) and not request.dry_run:
            # First: if no job may be ended, this raises, and the deletion must not stand in the audit log.
            ended = await self._workspaces.end_jobs(*of, by, why)
            await self._workspaces.note_deletion(found)
            gone = await self._delete(*of, by, why, ended)
            left = await self._workspaces.get_workspace(*of)
        return workspaces_pb2.DeleteWorkspaceResponse(
            found=workspace_message(found), left=workspace_message(left), ended=gone.ended, deleted=gone.jobs,
            messages=gone.messages, done=request.dry_run or not (left.jobs or left.messages),
        )  # fmt: skip

    async def _delete(self, namespace: str, workspace: str, by: str, why: str, some: int) -> "_Gone":
        """Remove nothing before all jobs have ended. A message that its consumer has locked stays.

        `some`: how many jobs have been ended already.
        """
        loop = asyncio.get_running_loop()
        until, ended, messages, jobs = loop.time() + CALL_S, 0, 0, 0
        while some:
            ended += some
            self._put(JobsNotified())
            if loop.time() > until:
                return _Gone(ended)
            some = await self._workspaces.end_jobs(namespace, workspace, by, why)
        # All jobs have ended, so no new messages come.
        while dropped := await self._workspaces.drop_messages(namespace, workspace):
            messages += dropped
            if loop.time() > until:
                return _Gone(ended, messages)
        while removed := await self._workspaces.delete_jobs(namespace, workspace, by, why):
            jobs += removed
            self._put(JobsNotified())
            if loop.time() > until:
                break
        return _Gone(ended, messages, jobs)


class _Gone(NamedTuple):
    """`ended`: jobs that were cancelled. `jobs`: that were removed."""

    ended: int = 0
    messages: int = 0
    jobs: int = 0


def workspace_message(row: WorkspaceRow) -> workspaces_pb2.Workspace:
    return workspaces_pb2.Workspace(**row._asdict())


def _named(namespace: str, workspace: str) -> tuple[str, str]:
    """Raises InvalidRequest."""
    faults = (
        ("namespace", namespace_fault(namespace) if namespace else None),
        ("workspace", _fault(workspace)),
    )
    problems: Violations = [(field, fault) for field, fault in faults if fault is not None]
    if problems:
        raise InvalidRequest(problems)
    return namespace or DEFAULT_NAMESPACE, workspace


def _fault(workspace: str) -> str | None:
    if not workspace:
        return "is empty; name a value of the label `workspace`"
    return next((fault for _, fault in label_faults({LABEL: workspace})), None)
