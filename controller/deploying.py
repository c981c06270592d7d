"""How a module gets deployed, whoever asks: a runner that starts, or a caller of the API."""

from collections.abc import Callable
from typing import Final

from controller.core.events import JobsCreated
from controller.core.settings import ClusterSettings
from controller.errors import InvalidModule
from controller.ports import Activated, Deployed, Store
from protos.cronring.v1 import schema_pb2
from protos.modules import module_of
from schema.canonical import canonical_module
from schema.validate import validate

DIGEST_LENGTH: Final = 64  # hex SHA-256
MIN_REPLICAS_MAX: Final = 1_000
# A module of 5,000 verbs with their documentation has to fit in one message.
MESSAGE_BYTES_MAX: Final = 32 * 1024 * 1024


class Deployer:
    """`put` takes JobsCreated, by which the node treats new jobs as its own until its next refetch."""

    def __init__(self, store: Store, settings: ClusterSettings, put: Callable[[JobsCreated], None]) -> None:
        self._store = store
        self._settings = settings
        self._put = put

    async def deploy(
        self,
        described: schema_pb2.Module,
        digest: str,
        min_replicas: int = 1,
        *,
        activate: bool,
        by: str,
        note: str = "",
    ) -> Deployed:
        """Validate, and create or find the deployment, in canonical form.

        Raises InvalidModule, and what the store raises.
        """
        module = canonical_module(module_of(described))
        problems = [(f"schema.{flaw.path}", flaw.message) for flaw in validate(module)]
        if len(digest) != DIGEST_LENGTH or any(c not in "0123456789abcdef" for c in digest):
            problems.append(("digest", f"must be a SHA-256 in {DIGEST_LENGTH} lower-case hex digits"))
        if not 1 <= min_replicas <= MIN_REPLICAS_MAX:
            problems.append(("min_replicas", f"is {min_replicas}; it must be from 1 to {MIN_REPLICAS_MAX}"))
        if problems:
            raise InvalidModule(problems)
        deployed = await self._store.create_deployment(
            module, digest, min_replicas, self._settings.timeout_ms, activate, self._settings.default_jitter, by, note
        )
        self._tell(deployed)
        return deployed

    async def activate(self, key: str, min_replicas: int, by: str, note: str) -> Activated:
        """A version that is there becomes the active one. Raises what the store raises."""
        if not 1 <= min_replicas <= MIN_REPLICAS_MAX:
            raise InvalidModule([("min_replicas", f"is {min_replicas}; it must be from 1 to {MIN_REPLICAS_MAX}")])
        activated = await self._store.activate_deployment(
            key, min_replicas, self._settings.timeout_ms, self._settings.default_jitter, by, note
        )
        self._tell(activated.deployed)
        return activated

    def _tell(self, deployed: Deployed) -> None:
        if deployed.created and deployed.jobs:
            self._put(JobsCreated(deployed.jobs))
