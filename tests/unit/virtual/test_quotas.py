"""Limits in virtual time: nothing is measured, a test says what goes over."""

from pathlib import Path

import pytest

from cronring.testing import VirtualCluster

SOURCE = """
from cronring import Context, every

@every("1h", jitter="off", memory_limit="256MiB", retries=1, backoff="1m", pause_after_failures=2)
def heavy(ctx: Context):
    print(ctx.attempt)

@every("1h", jitter="off", cpu_limit="30s", retries=1, backoff="1m", retry_on=["out_of_memory"])
async def slow():
    raise ValueError

@every("1h", jitter="off")
def free(): pass
"""


def test_a_verb_goes_over_its_limit_where_a_test_says_so(tmp_path: Path) -> None:
    file = tmp_path / "shop.py"
    file.write_text(SOURCE)
    with VirtualCluster(file, start="2026-03-28") as cluster:
        for verb, limit in (("heavy", "memory_limit"), ("slow", "cpu_limit"), ("free", "memory_limit")):
            cluster.exceed(verb, limit)
        cluster.run_until("2026-03-28T01:30")
        first, again = cluster.executions("heavy", outcome="out_of_memory")
        assert (first.error, first.attempt, again.attempt, again.trigger) == ("MemoryLimit", 1, 2, "retry")
        assert "memory_limit=256MiB" in first.error_message
        assert first.output == "1\n"
        [slow] = cluster.executions("slow")
        assert (slow.outcome, slow.error) == ("out_of_cpu", "CpuLimit")
        [free] = cluster.executions("free")
        assert free.outcome == "completed", "its job has no limit"
        cluster.run_until("2026-03-28T02:30")
        assert cluster.is_paused("heavy")
        cluster.exceed("slow", None)
        cluster.run_until("2026-03-28T03:30")
        assert [each.outcome for each in cluster.executions("slow")] == ["out_of_cpu", "out_of_cpu", "failed"]
        with pytest.raises(ValueError, match="no limit 'memory'"):
            cluster.exceed("heavy", "memory")
        with pytest.raises(LookupError, match="did you mean 'heavy'"):
            cluster.exceed("hevy", "memory_limit")
