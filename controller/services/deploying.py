"""How a module gets deployed: by a runner that starts, or by a caller of the API."""

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from typing import Final
from weakref import WeakValueDictionary

from cronring.controller.core.node.effects import Level, LogLine
from cronring.controller.core.node.events import JobsCreated, JobsNotified
from cronring.controller.core.orders.orphaning import misfits
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.errors import Conflict, InvalidModule
from cronring.controller.ports.store import ActivatedDeployment, CheckActive, Deployed, Killed, SentModule, Store
from cronring.protos.cronring.v1 import schema_pb2
from cronring.protos.modules import module_of
from cronring.protos.unknown import unknown_fields
from cronring.schema.canonical import canonical_module
from cronring.schema.keys import DEFAULT_NAMESPACE
from cronring.schema.module import Module
from cronring.schema.validate import Flaw, name_fault, namespace_fault, validate

DIGEST_LENGTH: Final = 64  # hex SHA-256
MIN_REPLICAS_MAX: Final = 1_000
JUDGED_AT_ONCE: Final = 50  # verbs and records; more are judged beside the loop
KEYS_LOGGED: Final = 10


class Deployer:
    """`put` takes JobsCreated: the node claims new jobs as their primary for a second. It watches them as a backup
    until the others have refetched (DueWindow.add_own). It takes JobsNotified as well, so that it doesn't wait for
    PostgreSQL to tell it of its own changes. `say` is told of each change of versions.
    """

    def __init__(
        self,
        store: Store,
        settings: ClusterSettings,
        put: Callable[[JobsCreated | JobsNotified], None],
        say: Callable[[LogLine], None],
    ) -> None:
        self._store = store
        self._settings = settings
        self._put = put
        self._say = say
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # by module
        self._judged: dict[str, Module] = {}  # the latest, by fingerprint, until the store has taken it

    async def deploy(
        self,
        described: schema_pb2.Module,
        digest: str,
        min_replicas: int = 1,
        *,
        by: str,
        note: str = "",
        dry_run: bool = False,
    ) -> Deployed:
        """Validate, and create or find the deployment, in canonical form.

        Raises InvalidModule, and what the store raises.
        """
        module = await _judge(described, digest, min_replicas)
        deployed = await self._store.create_deployment(
            module, digest, min_replicas, self._settings.timeout_ms, True, self._settings.default_jitter, by, note,
            dry_run=dry_run, fingerprint=fingerprint_of(described),
        )  # fmt: skip
        if dry_run:  # in a thread, as there may be 100,000 payloads
            return deployed._replace(misfits=await asyncio.to_thread(misfits, module, deployed.jobs))
        self._tell(deployed, by)
        return deployed

    async def register(
        self, described: schema_pb2.Module, digest: str, by: str, *, may_activate: bool = True
    ) -> Deployed:
        """What a runner hosts: as `deploy`, but a known version stays as it is, and is not judged again.

        Registrations of one module come one at a time. Else runners that start together would each hold a connection
        while they wait. `may_activate`: a new version becomes the active one; without it, Conflict is raised.
        """
        namespace, name = described.namespace or DEFAULT_NAMESPACE, described.name
        if name_fault(name) or namespace_fault(namespace) or not _is_digest(digest):
            await _judge(described, digest, 1)  # which says all that is wrong
        fingerprint = fingerprint_of(described)

        async def judge() -> Module:
            if not may_activate:
                raise Conflict(
                    f"this version of module {name!r} is new, and the runner's grant may not activate it: deploy it"
                    " first (cronring deploy FILE), or give a grant with --may-activate"
                )
            if fingerprint not in self._judged:
                self._judged = {fingerprint: await _judge(described, digest, 1)}
            return self._judged[fingerprint]

        async with self._turns.setdefault(f"{namespace}/{name}", asyncio.Lock()):
            deployed = await self._store.register_deployment(
                SentModule(namespace, name, fingerprint, judge), digest, self._settings.timeout_ms,
                self._settings.default_jitter, by, self._settings.window_ms,
            )  # fmt: skip
        # The verdict is kept until here: a runner tries again when the store fails, and 10,000 verbs take a second.
        self._judged.pop(fingerprint, None)
        self._tell(deployed, by)
        return deployed

    async def activate(
        self, key: str, min_replicas: int, by: str, note: str, check: CheckActive | None = None, *,
        dry_run: bool = False,
    ) -> ActivatedDeployment:  # fmt: skip
        """Make an existing version the active one. Raises InvalidModule, and what the store raises."""
        if problems := _problems_of_replicas(min_replicas):
            raise InvalidModule(problems)
        activated = await self._store.activate_deployment(
            key, min_replicas, self._settings.timeout_ms, self._settings.default_jitter, by, note, dry_run=dry_run,
            check=check,
        )  # fmt: skip
        if not dry_run:
            self._tell(activated.deployed, by)
        return activated

    async def kill(
        self, key: str, by: str, note: str, check: CheckActive | None = None, *, dry_run: bool = False
    ) -> Killed:
        """Raises what the store raises."""
        killed = await self._store.kill_deployment(key, by, note, dry_run=dry_run, check=check)
        if not dry_run:
            self._put(JobsNotified())
            self._log("undeployed", key, by, {"removed": killed.removed, "orphaned": killed.orphaned})
        return killed

    def _tell(self, deployed: Deployed, by: str) -> None:
        if not deployed.created:
            return
        if deployed.jobs:
            # docs/decisions/0051: a NOTIFY may be lost, so the controller that makes jobs watches them itself.
            self._put(JobsCreated(deployed.jobs))
        changes = {
            "added": deployed.added, "removed": deployed.removed, "orphaned": deployed.orphaned, "back": deployed.back
        }  # fmt: skip
        self._log("deployed", deployed.key, by, changes)

    def _log(self, event: str, key: str, by: str, changes: Mapping[str, tuple[str, ...]]) -> None:
        """Log what was done, and warn of jobs made by hand that don't run any more."""
        counts = {name: len(keys) for name, keys in changes.items()}
        gone = changes["removed"]
        values: dict[str, str | int | float | bool] = {"deployment": key, "by": by, **counts}
        if gone:
            values["first_removed"] = _first(gone)
        self._say(LogLine(Level.INFO, event, values))
        if orphaned := changes["orphaned"]:
            first = _first(orphaned)
            self._say(
                LogLine(
                    Level.WARNING, "jobs_orphaned", {"deployment": key, "by": by, "jobs": len(orphaned), "first": first}
                )
            )


def _first(keys: tuple[str, ...]) -> str:
    return ", ".join(keys[:KEYS_LOGGED]) + (", ..." if len(keys) > KEYS_LOGGED else "")


def fingerprint_of(described: schema_pb2.Module) -> str:
    """The hex SHA-256 of the module's bytes: the same bytes describe the same module."""
    return hashlib.sha256(described.SerializeToString(deterministic=True)).hexdigest()


def _is_digest(text: str) -> bool:
    return len(text) == DIGEST_LENGTH and all(c in "0123456789abcdef" for c in text)


def _problems_of_replicas(min_replicas: int) -> list[tuple[str, str]]:
    if 1 <= min_replicas <= MIN_REPLICAS_MAX:
        return []
    return [("min_replicas", f"is {min_replicas}; it must be from 1 to {MIN_REPLICAS_MAX}; leave it out for 1")]


async def _judge(described: schema_pb2.Module, digest: str, min_replicas: int) -> Module:
    """In canonical form. Raises InvalidModule with all that is wrong."""
    if len(described.verbs) + len(described.types) > JUDGED_AT_ONCE:  # 10,000 verbs take a second: ticks don't wait
        module, flaws = await asyncio.to_thread(_judged, described)
    else:
        module, flaws = _judged(described)
    problems = [(f"schema.{flaw.path}", flaw.message) for flaw in flaws]
    if not _is_digest(digest):
        problems.append(("digest", f"must be a SHA-256 in {DIGEST_LENGTH} lower-case hex digits"))
    problems += _problems_of_replicas(min_replicas)
    if problems:
        raise InvalidModule(problems)
    return module


def _judged(described: schema_pb2.Module) -> tuple[Module, list[Flaw]]:
    module = canonical_module(module_of(described))
    # docs/decisions/0086: if unknown fields were dropped in silence, the digest would name the wrong schema for good
    newer = [Flaw(path or "name", message) for path, message in unknown_fields(described)]
    return module, newer or validate(module)
