"""What processes use, and whether a child still serves a run with limits."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from cronring.runner import quota
from cronring.runner.processes import Tree, proportional_bytes, usage_of
from cronring.runner.quota import Meter, Unfit, cpu_excess, memory_excess, meter_for, refused_memory
from cronring.schema.execution import Outcome, Run

MIB = 1 << 20
# Starts a process that starts another one; on a line it lets the one in the middle go.
FAMILY = """
import subprocess, sys
middle = "import subprocess, sys; print(subprocess.Popen(['sleep', '60']).pid, flush=True); sys.stdin.readline()"
child = subprocess.Popen([sys.executable, "-c", middle], stdin=subprocess.PIPE)
print(child.pid, flush=True)
sys.stdin.readline()
child.communicate(b"\\n")
print("gone", flush=True)
sys.stdin.readline()
"""


def run(memory_limit: int = 0, cpu_limit_us: int = 0) -> Run:
    free = Run(1, 1, "m.v", "d", "v", 0, 0, 0, 1, 1, "schedule", False)
    return free._replace(memory_limit=memory_limit, cpu_limit_us=cpu_limit_us)


@pytest.fixture
def family() -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-c", FAMILY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    yield process
    os.killpg(process.pid, 9)
    process.communicate()


def test_a_tree_has_all_descendants_and_keeps_those_that_it_has_seen(family: "subprocess.Popen[str]") -> None:
    assert family.stdout is not None
    assert family.stdin is not None
    middle, leaf = sorted(int(family.stdout.readline()) for _ in range(2))
    tree = Tree(family.pid)
    assert [usage.pid for usage in tree.look()] == [family.pid, middle, leaf]
    family.stdin.write("\n")
    family.stdin.flush()
    assert family.stdout.readline() == "gone\n"
    assert [usage.pid for usage in tree.look()] == [family.pid, leaf], "an orphan counts on"
    assert [usage.pid for usage in Tree(family.pid).look()] == [family.pid]


def test_what_this_process_uses_is_known() -> None:
    before = usage_of(os.getpid())
    held = bytearray(b"x" * (64 * MIB))
    after = usage_of(os.getpid())
    assert before is not None
    assert after is not None
    assert after.resident_bytes - before.resident_bytes > 48 * MIB < len(held)
    assert abs((proportional_bytes(os.getpid()) or 0) - after.resident_bytes) < after.resident_bytes // 2
    assert after.born_ticks == before.born_ticks
    assert usage_of(2**22 + 1) is None
    assert Tree(2**22 + 1).look() == []


@pytest.fixture
def laden() -> Iterator[int]:
    """A process that holds 200 MiB, and has no others: this one may have a PostgreSQL among its children."""
    code = "import sys; kept = b'x' * (200 << 20); print(flush=True); sys.stdin.readline()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


def test_a_child_serves_while_three_quarters_of_the_room_are_left(laden: int) -> None:
    usage = usage_of(laden)
    assert usage is not None
    held = usage.resident_bytes
    limit = held + 300 * MIB
    assert isinstance(meter_for(run(memory_limit=limit), laden, held), Meter)
    assert isinstance(meter_for(run(memory_limit=limit), laden, held - 90 * MIB), Meter)
    assert meter_for(run(memory_limit=limit), laden, held - 110 * MIB) == Unfit(None)
    assert isinstance(meter_for(run(cpu_limit_us=1), laden, held - 110 * MIB), Meter), "CPU time has no past"
    too_small = meter_for(run(memory_limit=held // 2), laden, 0)
    assert isinstance(too_small, Unfit)
    assert too_small.excess is not None
    assert too_small.excess.outcome is Outcome.OUT_OF_MEMORY


def test_without_proc_nothing_is_measured_and_nothing_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tree, "look", lambda _: [])
    meter = meter_for(run(memory_limit=32 * MIB, cpu_limit_us=1), os.getpid(), 0)
    assert isinstance(meter, Meter)
    assert meter.look() is None
    assert (meter.cpu_us, meter.peak_bytes) == (0, 0)
    assert quota.resident_bytes(2**22 + 1) == 0


def test_what_is_told_names_the_limit_and_what_to_do() -> None:
    limited = run(memory_limit=256 * MIB, cpu_limit_us=30_000_000)
    assert memory_excess(limited, 301 * MIB, 1).message == (
        "it held 301 MiB, more than its memory_limit=256MiB: raise that, or take the work in smaller pieces"
    )
    assert "301 MiB in 3 processes, more" in memory_excess(limited, 301 * MIB, 3).message
    assert cpu_excess(limited).message == (
        "it took more than its cpu_limit=30s of CPU time: raise that, or do less in one run"
    )
    assert refused_memory(limited, "").message.endswith("smaller pieces\nMemoryError")


def test_a_process_that_ends_while_it_is_looked_at_holds_nothing() -> None:
    """Forks that share much were each counted in full at that moment: a run within its limit was killed."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)  # it is over, and still there to be looked at
    own, gone = usage_of(os.getpid()), usage_of(ended.pid)
    assert own is not None
    assert gone is not None
    held = Meter(run(memory_limit=100 * MIB), Tree(os.getpid()), [own])._exact(
        [own, gone._replace(resident_bytes=500 * MIB)]
    )
    ended.wait()
    assert held is not None
    assert held < 500 * MIB
