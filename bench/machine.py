"""What a figure was measured on: date, cores, memory, versions."""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version


def host() -> dict[str, str]:
    """When and where: words for the head of any result."""
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = len(os.sched_getaffinity(0))
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": f"{cores} cores, {memory_gib:.0f} GiB, {platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def machine(postgres_version: str) -> dict[str, str]:
    """Words for the head of a result of the whole. `postgres_version` as `SHOW server_version` gives it."""
    return {
        **host(),
        "postgresql": postgres_version,
        **{name: version(name) for name in ("cronring", "asyncpg", "grpcio", "protobuf")},
    }
