"""cronring.v1.Deployments: create, list, get, activate an older one, kill."""

from collections.abc import Callable

from controller.api.messages import deployment_message
from controller.api.paging import Pages, page_size
from controller.api.requests import Context, actor, name, note, required
from controller.core.events import JobsNotified
from controller.deploying import Deployer
from controller.ports import Store
from controller.reads import DeploymentFilter, Reads
from protos.cronring.v1 import deployments_pb2, deployments_pb2_grpc

_KEY = "a deployment's key, as `cronring deployments list` shows it"


class DeploymentsService(deployments_pb2_grpc.DeploymentsServicer):
    """`put` takes JobsNotified, so that this controller doesn't wait for PostgreSQL to tell it of its own kill."""

    def __init__(self, store: Store, reads: Reads, deployer: Deployer, put: Callable[[JobsNotified], None]) -> None:
        self._store = store
        self._reads = reads
        self._deployer = deployer
        self._put = put

    async def CreateDeployment(
        self, request: deployments_pb2.CreateDeploymentRequest, context: Context
    ) -> deployments_pb2.CreateDeploymentResponse:
        by, why = actor(request.requested_by, context), note("note", request.note)
        deployed = await self._deployer.deploy(
            request.schema, request.digest, request.min_replicas or 1, activate=True, by=by, note=why
        )
        return deployments_pb2.CreateDeploymentResponse(
            deployment=deployment_message(await self._reads.get_deployment(deployed.key)),
            created=deployed.created,
            jobs_added=deployed.added,
            jobs_removed=deployed.removed,
            jobs_carried_over=deployed.carried_over,
        )

    async def ListDeployments(
        self, request: deployments_pb2.ListDeploymentsRequest, context: Context
    ) -> deployments_pb2.ListDeploymentsResponse:
        where = DeploymentFilter(
            namespace=name("namespace", request.namespace),
            module=name("module", request.module),
            active_only=request.active_only,
        )
        limit, pages = page_size(request.page_size), Pages("ListDeployments", *where)
        rows = await self._reads.list_deployments(where, pages.number_cursor(request.page_token), limit + 1)
        page = rows[:limit]
        return deployments_pb2.ListDeploymentsResponse(
            deployments=[deployment_message(row) for row in page],
            next_page_token=pages.token(page[-1].deployment_id) if len(rows) > limit else "",
        )

    async def GetDeployment(
        self, request: deployments_pb2.GetDeploymentRequest, context: Context
    ) -> deployments_pb2.Deployment:
        return deployment_message(await self._reads.get_deployment(required("key", request.key, _KEY)))

    async def ActivateDeployment(
        self, request: deployments_pb2.ActivateDeploymentRequest, context: Context
    ) -> deployments_pb2.ActivateDeploymentResponse:
        by, why = actor(request.requested_by, context), note("note", request.note)
        key = required("key", request.key, _KEY)
        activated = await self._deployer.activate(key, request.min_replicas or 1, by, why)
        previous = activated.previous
        deployed = activated.deployed
        return deployments_pb2.ActivateDeploymentResponse(
            deployment=deployment_message(await self._reads.get_deployment(key)),
            activated=deployed.created,
            previous=None if previous is None else deployment_message(await self._reads.get_deployment(previous)),
            previous_running=activated.running,
            jobs_added=deployed.added,
            jobs_removed=deployed.removed,
            jobs_carried_over=deployed.carried_over,
        )

    async def KillDeployment(
        self, request: deployments_pb2.KillDeploymentRequest, context: Context
    ) -> deployments_pb2.KillDeploymentResponse:
        by, why = actor(request.requested_by, context), note("note", request.note)
        removed = await self._store.kill_deployment(required("key", request.key, _KEY), by, why)
        self._put(JobsNotified())
        row = await self._reads.get_deployment(request.key)
        return deployments_pb2.KillDeploymentResponse(deployment=deployment_message(row), jobs_removed=removed)
