"""What a figure was measured on: date, cores, memory, versions."""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version


def machine(postgres_version: str) -> dict[str, str]:
    """Words for the head of a result. `postgres_version` as `SHOW server_version` gives it."""
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = len(os.sched_getaffinity(0))
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": f"{cores} cores, {memory_gib:.0f} GiB, {platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "postgresql": postgres_version,
        **{name: version(name) for name in ("cronring", "asyncpg", "grpcio", "protobuf")},
    }
