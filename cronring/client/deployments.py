"""Calls about versions of modules."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from grpc.aio import Channel

from cronring.client import comparing, convert, versions
from cronring.client.channel import Failover
from cronring.client.paging import follow
from cronring.protos.cronring.v1 import deployments_pb2
from cronring.protos.cronring.v1.deployments_pb2_grpc import DeploymentsStub
from cronring.protos.modules import module_message
from cronring.schema.module import Module

Answer = TypeVar("Answer")

_LIST: Final = "`cronring deployments list`"


class DeploymentCalls:
    """Create, list, get, compare, activate, kill."""

    def __init__(self, failover: Failover) -> None:
        self._failover = failover

    async def create(
        self, module: Module, digest: str, min_replicas: int = 1, note: str = "", by: str = "", *, dry_run: bool = False
    ) -> versions.Deployed:
        """Make this version the active one. Idempotent by `digest`. `dry_run`: only say what would become of its jobs.

        Raises Invalid for a schema that is refused, and Conflict where that digest is another schema's.
        """
        timeout = self._failover.timeout_s
        request = deployments_pb2.CreateDeploymentRequest(
            schema=module_message(module), digest=digest, min_replicas=min_replicas, requested_by=by, note=note,
            dry_run=dry_run,
        )  # fmt: skip
        return convert.deployed(
            await self._change(
                lambda channel: DeploymentsStub(channel).CreateDeployment(request, timeout=timeout),
                dry_run=dry_run,
                repeatable=True,
            )
        )

    async def list(
        self, namespace: str = "", module: str = "", active_only: bool = False, limit: int | None = None
    ) -> list[versions.Deployment]:
        async def fetch(page_size: int, token: str) -> tuple[list[versions.Deployment], str]:
            request = deployments_pb2.ListDeploymentsRequest(
                page_size=page_size, page_token=token, namespace=namespace, module=module, active_only=active_only
            )
            answer = await self._failover.unary(
                lambda channel: DeploymentsStub(channel).ListDeployments(request, timeout=self._failover.timeout_s)
            )
            return [convert.deployment(each) for each in answer.deployments], answer.next_page_token

        return await follow(fetch, limit)

    async def count(self, namespace: str = "", module: str = "", active_only: bool = False) -> int:
        """How many `list` has."""
        request = deployments_pb2.ListDeploymentsRequest(
            page_size=1, namespace=namespace, module=module, active_only=active_only, total=True
        )
        timeout = self._failover.timeout_s
        answer = await self._failover.unary(
            lambda channel: DeploymentsStub(channel).ListDeployments(request, timeout=timeout)
        )
        return answer.total.count

    async def get(self, key: str) -> versions.Deployment:
        """Raises NotFound."""
        timeout = self._failover.timeout_s
        request = deployments_pb2.GetDeploymentRequest(key=key)
        return convert.deployment(
            await self._failover.unary(lambda channel: DeploymentsStub(channel).GetDeployment(request, timeout=timeout))
        )

    async def compare(self, key: str, from_key: str = "", days: int | None = None) -> comparing.Compared:
        """What a change from one version (the active one) to `key` does to the ticks of the next `days`.

        Raises NotFound, Invalid for versions of two modules, and Conflict for a schema that can't be read.
        """
        request = deployments_pb2.CompareDeploymentsRequest(key=key, from_key=from_key, days=days)
        return comparing.compared(
            await self._failover.unary(
                lambda channel: DeploymentsStub(channel).CompareDeployments(request, timeout=self._failover.timeout_s)
            )
        )

    async def activate(
        self, key: str, note: str = "", by: str = "", min_replicas: int = 1, *, dry_run: bool = False, etag: str = ""
    ) -> versions.Activated:
        """Make a version that is there the active one again. Idempotent. Raises NotFound.

        `etag`: only if this version still has it, else EtagMismatch is raised. It changes with what is active.
        """
        timeout = self._failover.timeout_s
        request = deployments_pb2.ActivateDeploymentRequest(
            key=key, note=note, requested_by=by, min_replicas=min_replicas, dry_run=dry_run, etag=etag
        )
        return convert.activated(
            await self._change(
                lambda channel: DeploymentsStub(channel).ActivateDeployment(request, timeout=timeout),
                dry_run=dry_run,
                repeatable=not etag,
            )
        )

    async def kill(
        self, key: str, note: str = "", by: str = "", *, dry_run: bool = False, etag: str = ""
    ) -> versions.Killed:
        """End it; what runs finishes. `dry_run`: only say what would become of its jobs. Raises NotFound.

        `etag`: as of `activate`.
        """
        timeout = self._failover.timeout_s
        request = deployments_pb2.KillDeploymentRequest(key=key, requested_by=by, note=note, dry_run=dry_run, etag=etag)
        return convert.killed(
            await self._change(
                lambda channel: DeploymentsStub(channel).KillDeployment(request, timeout=timeout),
                dry_run=dry_run,
            )
        )

    async def _change(
        self, call: Callable[[Channel], Awaitable[Answer]], *, dry_run: bool, repeatable: bool = False
    ) -> Answer:
        if dry_run:
            return await self._failover.unary(call)
        return await self._failover.change(call, _LIST, repeatable=repeatable)
