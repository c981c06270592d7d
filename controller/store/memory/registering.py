"""What runners host, in memory; see controller/store/deployments.py."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from cronring.controller.ports.store import Deployed, SentModule
from cronring.controller.store.memory.rows import StoredDeployment


class MemoryRegistering(ABC):
    """The part of MemoryStore that reads a module only if nobody has before. It awaits what judges the module."""

    deployments: list[StoredDeployment]
    now_us: Callable[[], int]

    @abstractmethod
    async def create_deployment(self, *arguments: Any, **named: Any) -> Deployed: ...

    async def register_deployment(
        self, sent: SentModule, digest: str, timeout_ms: int, default_jitter: str = "", by: str = "",
        soon_ms: int | None = None,
    ) -> Deployed:  # fmt: skip
        known = (sent.namespace, sent.name), digest, sent.fingerprint
        for row in self.deployments:
            if (row.module, row.digest, row.fingerprint) == known:
                return Deployed(row.key, row.min_replicas > 0, False, (), (), (), [])
        deployed = await self.create_deployment(
            await sent.judge(), digest, 1, timeout_ms, False, default_jitter, by, fingerprint=sent.fingerprint
        )  # fmt: skip
        if soon_ms is None:
            return deployed
        until = self.now_us() + 1_000 * soon_ms
        soon = [job for job in deployed.jobs if job.next_run_at is not None and job.next_run_at <= until]
        return deployed._replace(jobs=soon)
