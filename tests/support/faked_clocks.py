"""Wall clocks that are wrong, and can be set while their process runs: Debian's `faketime`.

A clock's offset stands in a file that the faked process reads at each look at its clock. CLOCK_MONOTONIC stays what it
is, as it does when somebody sets a real machine's clock, but for `drifting`, which is of the oscillator below both.

`python -m tests.support.faked_clocks '2027-03-28 00:55' tests/unit -n 2`: pytest, as if it began at that instant (UTC).
"""

import contextlib
import os
import shutil
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

LIBRARY: Final = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")


def missing() -> str:
    """What has to be installed, in words; empty when everything is there."""
    return "" if shutil.which("faketime") and _library() else "faketime"


def is_faked() -> bool:
    """Whether this very process runs under a faked clock, as in tests/conformance/test_clock_lane.py."""
    return "libfaketime" in os.environ.get("LD_PRELOAD", "")


# For tests in which PostgreSQL itself ends a wait, by statement_timeout or lock_timeout.
unless_clock_is_faked: Final = pytest.mark.skipif(
    is_faked(), reason="under faketime, PostgreSQL's own time-outs don't fire in time"
)

# For tests in which a thread's wait for a lock runs out: libfaketime 0.9.10 knows nothing of sem_clockwait.
unless_waits_of_threads_never_run_out: Final = pytest.mark.skipif(
    is_faked(), reason="under faketime, waits of Python's threads don't run out"
)


def _library() -> Path | None:
    """Where Debian puts it on this architecture."""
    return LIBRARY if LIBRARY.exists() else next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)


@dataclass(frozen=True)
class SettableClock:
    """Of every process that is started with `environment`. Starts right."""

    file: Path

    def set(self, offset_s: float) -> None:
        """From now on it is so much fast (or slow): a step for whoever runs, at once."""
        beside = self.file.with_suffix(".new")
        beside.write_text(f"{offset_s:+.6f}s\n")
        beside.chmod(0o644)
        beside.replace(self.file)  # nobody reads half of it

    @property
    def environment(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(_library()), "FAKETIME_TIMESTAMP_FILE": str(self.file), "FAKETIME_NO_CACHE": "1",
            "DONT_FAKE_MONOTONIC": "1", "NO_FAKE_STAT": "1",
        }  # fmt: skip

    @property
    def wrapper(self) -> tuple[str, ...]:
        """A command that starts another under this clock."""
        return ("env", *(f"{name}={value}" for name, value in self.environment.items()))


def settable_clock(folder: Path) -> SettableClock:
    _sweep()
    clock = SettableClock(folder / "clock")
    clock.set(0.0)
    return clock


def wrong_by(offset_s: float) -> tuple[str, ...]:
    """A command that starts another whose wall clock is so much fast (or slow)."""
    return _under(f"{offset_s:+f}s", DONT_FAKE_MONOTONIC="1")


def drifting(rate: float) -> tuple[str, ...]:
    """A command that starts another for which all time passes `rate` times as fast, monotonic time included."""
    return _under(f"+0s x{rate:g}")


def set_to(instant: datetime) -> tuple[str, ...]:
    """A command that starts another for which it is `instant` (with a zone) now, monotonic time moved along."""
    return _under(f"{(instant - datetime.now(UTC)).total_seconds():+f}s")


def _sweep() -> None:
    """Removes what faked processes have left that were killed: libfaketime names it by their numbers.

    Another user's process that gets such a number later can't start under a faked clock: it may not open what is there.
    """
    for left in Path("/dev/shm").glob("*faketime_*_*"):
        if not Path("/proc", left.name.rpartition("_")[2]).exists():
            with contextlib.suppress(PermissionError):
                left.unlink(missing_ok=True)


def _under(specification: str, **more: str) -> tuple[str, ...]:
    """By the library alone: the program `faketime` stays beside what it starts, and would be killed in its place."""
    _sweep()
    variables = {"LD_PRELOAD": str(_library()), "FAKETIME": specification, "NO_FAKE_STAT": "1"} | more
    return ("env", *(f"{name}={value}" for name, value in variables.items()))


if __name__ == "__main__":
    begins = datetime.fromisoformat(sys.argv[1]).replace(tzinfo=UTC)
    os.execvp("env", [*set_to(begins), sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *sys.argv[2:]])
