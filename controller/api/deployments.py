"""cronring.v1.Deployments: create, list, get, compare, activate an older one, kill."""

import contextlib

from cronring.controller.api.comparing import DAYS_DEFAULT, DAYS_MAX, active_of, compared
from cronring.controller.api.etags import check_etag, deployment_etag
from cronring.controller.api.lookup import admit_to_deployment, check_followed, parsed_module
from cronring.controller.api.messages import deployment_message
from cronring.controller.api.paging import Pages, page_size, total
from cronring.controller.api.problems import InvalidRequest
from cronring.controller.api.requests import Context, actor, name, note, number, required
from cronring.controller.api.scope import namespaces, require, sees, shows_outputs
from cronring.controller.api.token_box import TokenBox
from cronring.controller.errors import Conflict, NotFound
from cronring.controller.ports.reads import DeploymentFilter, Reads
from cronring.controller.ports.store import ActiveVersion, CheckActive, Deployed
from cronring.controller.services.deploying import Deployer
from cronring.protos.cronring.v1 import deployments_pb2, deployments_pb2_grpc, schema_pb2
from cronring.schema.after import canonical_after
from cronring.schema.identity import Permission
from cronring.schema.keys import DEFAULT_NAMESPACE
from cronring.schema.policy_model import PolicyError

_KEY = "a deployment's key, as `cronring deployments list` shows it"

_HIDDEN = "its payload doesn't fit any more"  # for who may not read payloads: faults quote them


class DeploymentsService(deployments_pb2_grpc.DeploymentsServicer):
    """The deployer changes versions; the rest only reads."""

    def __init__(self, reads: Reads, box: TokenBox, deployer: Deployer) -> None:
        self._reads = reads
        self._box = box
        self._deployer = deployer

    async def CreateDeployment(
        self, request: deployments_pb2.CreateDeploymentRequest, context: Context
    ) -> deployments_pb2.CreateDeploymentResponse:
        by, why = actor(request.requested_by, context), note("note", request.note)
        require(Permission.DEPLOY, request.schema.namespace or DEFAULT_NAMESPACE)
        _check_followed(request.schema)
        replicas = request.min_replicas if request.HasField("min_replicas") else 1
        deployed = await self._deployer.deploy(
            request.schema, request.digest, replicas, by=by, note=why,
            dry_run=request.dry_run,
        )  # fmt: skip
        return deployments_pb2.CreateDeploymentResponse(
            deployment=await self._created(deployed, request),
            created=deployed.created,
            jobs_added=deployed.added,
            jobs_removed=deployed.removed,
            jobs_carried_over=deployed.carried_over,
            jobs_orphaned=deployed.orphaned,
            jobs_back=deployed.back,
            jobs_misfit=[
                deployments_pb2.Misfit(job=each.key, faults=each.faults if shows_outputs(each.key) else [_HIDDEN])
                for each in deployed.misfits
            ],
        )

    async def _created(
        self, deployed: Deployed, request: deployments_pb2.CreateDeploymentRequest
    ) -> deployments_pb2.Deployment:
        """The deployment as a message. After a dry run it may not exist."""
        try:
            return deployment_message(await self._reads.get_deployment(deployed.key))
        except NotFound:
            if not request.dry_run:
                raise
        module = request.schema
        namespace = module.namespace or DEFAULT_NAMESPACE
        return deployments_pb2.Deployment(
            key=deployed.key, namespace=namespace, module=module.name, digest=request.digest
        )  # fmt: skip

    async def ListDeployments(
        self, request: deployments_pb2.ListDeploymentsRequest, context: Context
    ) -> deployments_pb2.ListDeploymentsResponse:
        where = DeploymentFilter(
            namespace=name("namespace", request.namespace),
            module=name("module", request.module),
            active_only=request.active_only,
        )
        limit, pages = page_size(request), Pages(self._box, "ListDeployments", *where)
        where = where._replace(namespaces=namespaces(Permission.VIEW, where.namespace))
        rows = await self._reads.list_deployments(where, pages.number_cursor(request.page_token), limit + 1)
        page = rows[:limit]
        return deployments_pb2.ListDeploymentsResponse(
            deployments=[deployment_message(row) for row in page],
            next_page_token=pages.token(page[-1].deployment_id) if len(rows) > limit else "",
            total=await total(request, lambda: self._reads.count_deployments(where)),
        )

    async def GetDeployment(
        self, request: deployments_pb2.GetDeploymentRequest, context: Context
    ) -> deployments_pb2.Deployment:
        key = required("key", request.key, _KEY)
        admit_to_deployment(key, Permission.VIEW)
        return await self._told(key)

    async def CompareDeployments(
        self, request: deployments_pb2.CompareDeploymentsRequest, context: Context
    ) -> deployments_pb2.CompareDeploymentsResponse:
        key, from_key = required("key", request.key, _KEY), name("from_key", request.from_key)
        days = number(request, "days", DAYS_DEFAULT, DAYS_MAX)
        admit_to_deployment(key, Permission.VIEW)
        row = await self._reads.get_deployment(key)
        if not from_key:
            return await compared(self._reads, row, await active_of(self._reads, row), days)
        admit_to_deployment(from_key, Permission.VIEW)
        other = await self._reads.get_deployment(from_key)
        if (other.namespace, other.module) != (row.namespace, row.module):
            raise InvalidRequest([("from_key", f"is a version of another module; give one of {row.module!r}")])
        return await compared(self._reads, row, other, days)

    async def ActivateDeployment(
        self, request: deployments_pb2.ActivateDeploymentRequest, context: Context
    ) -> deployments_pb2.ActivateDeploymentResponse:
        by, why = actor(request.requested_by, context), note("note", request.note)
        key = await self._deployed(request.key)
        replicas = request.min_replicas if request.HasField("min_replicas") else 1
        check = self._check(request.etag, key)
        activated = await self._deployer.activate(key, replicas, by, why, check, dry_run=request.dry_run)
        previous = activated.previous
        deployed = activated.deployed
        return deployments_pb2.ActivateDeploymentResponse(
            deployment=await self._told(key),
            activated=deployed.created,
            previous=None if previous is None else deployment_message(await self._reads.get_deployment(previous)),
            previous_running=activated.running,
            jobs_added=deployed.added,
            jobs_removed=deployed.removed,
            jobs_carried_over=deployed.carried_over,
            jobs_orphaned=deployed.orphaned,
            jobs_back=deployed.back,
        )

    async def KillDeployment(
        self, request: deployments_pb2.KillDeploymentRequest, context: Context
    ) -> deployments_pb2.KillDeploymentResponse:
        by, why = actor(request.requested_by, context), note("note", request.note)
        key = await self._deployed(request.key)
        killed = await self._deployer.kill(key, by, why, self._check(request.etag, key), dry_run=request.dry_run)
        return deployments_pb2.KillDeploymentResponse(
            deployment=await self._told(key),
            jobs_removed=killed.removed,
            jobs_orphaned=killed.orphaned,
        )

    async def _told(self, key: str) -> deployments_pb2.Deployment:
        """Raises NotFound. If another version becomes active meanwhile, the etag is outdated."""
        row = await self._reads.get_deployment(key)
        rows = await self._reads.list_deployments(DeploymentFilter(row.namespace, row.module, active_only=True), 0, 1)
        active = ActiveVersion(rows[0].key, rows[0].digest, rows[0].min_replicas) if rows else ActiveVersion()
        message = deployment_message(row)
        message.etag = deployment_etag(self._box, key, active)
        with contextlib.suppress(Conflict):
            message.verbs.extend(verb.name for verb in parsed_module(row.schema_text).verbs)
        return message

    def _check(self, etag: str, key: str) -> CheckActive:
        def check(active: ActiveVersion) -> None:
            check_etag(etag, deployment_etag(self._box, key, active), f"what is active of the module of {key!r}")

        return check

    async def _deployed(self, key: str) -> str:
        """The key, of a deployment that the caller may change. Raises InvalidRequest, NotFound, Forbidden."""
        required("key", key, _KEY)
        if sees(key):
            await self._reads.get_deployment(key)  # first: a missing key is NotFound, whatever the caller may do
        admit_to_deployment(key, Permission.DEPLOY)
        return key


def _check_followed(described: schema_pb2.Module) -> None:
    """Raises InvalidRequest. A malformed key passes here, and is found when the module is judged."""
    for index, verb in enumerate(described.verbs):
        if verb.policy.after:
            with contextlib.suppress(PolicyError):
                check_followed(f"schema.verbs[{index}].policy.after", canonical_after(verb.policy.after))
