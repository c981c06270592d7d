"""Verbs that fail as long as a file is there."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cronring import cron, every

SWITCH = Path(os.environ["SWITCH"])
FAR = f"{datetime.now(UTC) + timedelta(days=3):%a} 03:17-03:18"


def trouble(name: str) -> None:
    if (SWITCH / name).exists():
        raise RuntimeError(f"{name} is broken")


@every("1s", jitter="off")
def moody() -> None:
    trouble("moody")


@every("2s", jitter="off", retries=1, backoff="300ms")
def retried() -> None:
    trouble("retried")


@every("1s", jitter="off", pause_after_failures=2)
def fragile() -> None:
    trouble("fragile")


@every("1s", jitter="off", late_after="2s")
def punctual() -> None:
    pass


@cron("* * * * * *", jitter="off", window=FAR)
def nightly() -> None:
    pass
