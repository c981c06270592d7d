"""What a runner hosts becomes deployments, as far as its grant goes."""

from cronring.controller.errors import Conflict, InvalidModule, StoreUnavailable
from cronring.controller.ports.audit_chain import OnRefusal
from cronring.controller.ports.caller import acting, remarking
from cronring.controller.ports.tokens import RunnerGrant, TokenStore
from cronring.controller.services.deploying import KEYS_LOGGED, Deployer
from cronring.controller.services.granted import GrantRevoked, grant_of_caller, outside
from cronring.protos.runner.v1 import runner_pb2 as wire
from cronring.schema.keys import DEFAULT_NAMESPACE, namespace_of


class Registering:
    """`grants` say what a runner with a certificate may host. `refused` counts what it may not."""

    def __init__(self, deployer: Deployer, grants: TokenStore, refused: OnRefusal) -> None:
        self._deployer = deployer
        self._grants = grants
        self._refused = refused

    async def modules(self, hello: wire.Hello) -> list[wire.RegisteredModule]:
        """What became of each module, in the order of Hello. Raises StoreUnavailable, StoreError."""
        try:
            grant = await grant_of_caller(self._grants)
        except GrantRevoked:
            raise StoreUnavailable("the runner's grant has just been revoked") from None  # the door ends the stream
        return [await self._module(hosted, hello, grant) for hosted in hello.modules]

    async def _module(
        self, hosted: wire.HostedModule, hello: wire.Hello, grant: RunnerGrant | None
    ) -> wire.RegisteredModule:
        if problem := outside(grant, hosted.schema.namespace or DEFAULT_NAMESPACE, hosted.schema.name):
            self._refused("forbidden", why=problem)
            return wire.RegisteredModule(problem=problem)
        words = f"runner {hello.runner_id} on {hello.hostname}"
        may_activate = grant is None or (grant.may_activate and not _follows_others(grant, hosted))
        try:
            with remarking(words):
                deployed = await self._deployer.register(
                    hosted.schema, hosted.digest, acting(words), may_activate=may_activate
                )
        except (InvalidModule, Conflict) as error:
            self._refused("module", 1)
            return wire.RegisteredModule(problem=str(error))
        if not deployed.created:
            return wire.RegisteredModule(deployment=deployed.key, active=deployed.active)
        return wire.RegisteredModule(
            deployment=deployed.key,
            active=deployed.active,
            jobs_added=len(deployed.added),
            jobs_removed=len(deployed.removed),
            jobs_orphaned=len(deployed.orphaned),
            jobs_back=len(deployed.back),
            first_gone=(*deployed.orphaned, *deployed.removed)[:KEYS_LOGGED],
        )


def _follows_others(grant: RunnerGrant, hosted: wire.HostedModule) -> bool:
    """Whether its jobs follow jobs of other namespaces. Then somebody who may see those has to deploy the module."""
    followed = (verb.policy.after for verb in hosted.schema.verbs)
    return any(after and namespace_of(after) != grant.namespace for after in followed)
