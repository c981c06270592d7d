"""Calls about versions of modules."""

from cronring.client import convert, model
from cronring.client.channel import Failover
from cronring.client.paging import follow
from protos.cronring.v1 import deployments_pb2
from protos.cronring.v1.deployments_pb2_grpc import DeploymentsStub
from protos.modules import module_message
from schema.module import Module


class DeploymentCalls:
    """Create, list, get, activate, kill."""

    def __init__(self, failover: Failover) -> None:
        self._failover = failover

    async def create(
        self, module: Module, digest: str, min_replicas: int = 1, note: str = "", by: str = ""
    ) -> model.Deployed:
        """Make this version the active one. Idempotent by `digest`. Raises Invalid for a schema that is refused."""
        timeout = self._failover.timeout_s
        request = deployments_pb2.CreateDeploymentRequest(
            schema=module_message(module), digest=digest, min_replicas=min_replicas, requested_by=by, note=note
        )
        return convert.deployed(
            await self._failover.unary(
                lambda channel: DeploymentsStub(channel).CreateDeployment(request, timeout=timeout)
            )
        )

    async def list(
        self, namespace: str = "", module: str = "", active_only: bool = False, limit: int | None = None
    ) -> list[model.Deployment]:
        async def fetch(page_size: int, token: str) -> tuple[list[model.Deployment], str]:
            request = deployments_pb2.ListDeploymentsRequest(
                page_size=page_size, page_token=token, namespace=namespace, module=module, active_only=active_only
            )
            answer = await self._failover.unary(
                lambda channel: DeploymentsStub(channel).ListDeployments(request, timeout=self._failover.timeout_s)
            )
            return [convert.deployment(each) for each in answer.deployments], answer.next_page_token

        return await follow(fetch, limit)

    async def get(self, key: str) -> model.Deployment:
        """Raises NotFound."""
        timeout = self._failover.timeout_s
        request = deployments_pb2.GetDeploymentRequest(key=key)
        return convert.deployment(
            await self._failover.unary(lambda channel: DeploymentsStub(channel).GetDeployment(request, timeout=timeout))
        )

    async def activate(self, key: str, note: str = "", by: str = "", min_replicas: int = 1) -> model.Activated:
        """Make a version that is there the active one again. Idempotent. Raises NotFound."""
        timeout = self._failover.timeout_s
        request = deployments_pb2.ActivateDeploymentRequest(
            key=key, note=note, requested_by=by, min_replicas=min_replicas
        )
        return convert.activated(
            await self._failover.unary(
                lambda channel: DeploymentsStub(channel).ActivateDeployment(request, timeout=timeout)
            )
        )

    async def kill(self, key: str, note: str = "", by: str = "") -> tuple[model.Deployment, tuple[str, ...]]:
        """min_replicas 0, its jobs removed (their keys come back); what runs finishes. Raises NotFound."""
        timeout = self._failover.timeout_s
        request = deployments_pb2.KillDeploymentRequest(key=key, requested_by=by, note=note)
        answer = await self._failover.unary(
            lambda channel: DeploymentsStub(channel).KillDeployment(request, timeout=timeout)
        )
        return convert.deployment(answer.deployment), tuple(answer.jobs_removed)
