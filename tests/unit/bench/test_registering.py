"""The files, the table and the watch of `bench.registering`."""

import asyncio
import sys
import time
from io import StringIO
from pathlib import Path

from bench.loop_watch import LEAST_MS, Watch
from bench.registering import Registered, Spent, case, files, table
from cronring.runner.describe import read_program
from cronring.runner.modules import load_module
from cronring.schema.validate import VERBS_LIMIT
from tests.support.waiting import TIMEOUT_S

CASE = {
    "what": "new", "verbs": 20_000, "read_s": 2.5, "deployed_s": 8.0, "cpu_s": [1.5, 0.3, 0.2],
    "hold_ms": [40, 10, 9], "held_cpu_ms": [30, 4, 5],
    "late_p50_ms": 12.0, "last_p50_ms": 30.0, "last_max_ms": 41.5, "ticks": 9,
}  # fmt: skip


def test_what_is_registered_is_what_authors_write_and_fills_several_modules(tmp_path: Path) -> None:
    first, second = files(tmp_path, VERBS_LIMIT + 5, 0)
    assert first.read_text().count("def job_") == VERBS_LIMIT
    module = load_module(read_program(second, sys.executable, "default")).module
    assert len(module.verbs) == 5
    assert {verb.policy.retries for verb in module.verbs} == {None, 3}


def test_each_case_is_a_line_below_the_herd_alone() -> None:
    result = {
        "name": "registering", "shape": {"controllers": 3}, "machine": {"date": "2026-11-23"},
        "quiet": {
            "hold_ms": [8, 0, 7], "held_cpu_ms": [1, 0, 2], "late_p50_ms": 11.0, "last_p50_ms": 20.0,
            "last_max_ms": 22.0, "ticks": 10,
        },
        "cases": [CASE],
    }  # fmt: skip
    alone, case = table(result).splitlines()[-2:]
    assert alone == "| none | - | - | - | 8 / 0 / 7 | 1 / 0 / 2 | 10 | 11 | 20 | 22 |"
    assert case == "| 20,000 new | 2.5 | 8 | 1.5 / 0.3 / 0.2 | 40 / 10 / 9 | 30 / 4 / 5 | 9 | 12 | 30 | 41.5 |"


def test_a_case_has_the_lateness_of_all_rounds_and_what_the_herd_alone_did_not_spend() -> None:
    quiet = Spent(10.0, [1.0, 1.0], [0.0, 0.0], [0.0, 0.0], [[10.0]])
    first = Registered(1.0, 2.0, Spent(2.0, [0.2, 0.7], [5.0, 6.0], [1.0, 2.0], [[1.0, 2.0, 9.0], [3.0, 4.0]]))
    second = Registered(3.0, 4.0, Spent(2.0, [0.9, 0.2], [9.0, 2.0], [3.0, 1.0], [[500.0, 50.0]]))
    assert case("new", 7, [first, second], quiet) == {
        "what": "new", "verbs": 7, "read_s": 2.0, "deployed_s": 3.0, "cpu_s": [0.6, 0.0],
        "hold_ms": [9, 6], "held_cpu_ms": [3, 2],
        "late_p50_ms": 4.0, "last_p50_ms": 9.0, "last_max_ms": 500.0, "ticks": 3,
    }  # fmt: skip


async def test_what_holds_the_loop_gets_a_line() -> None:
    lines = StringIO()
    Watch(asyncio.get_running_loop(), lines)
    await asyncio.sleep(0)
    time.sleep(0.05)  # noqa: ASYNC251  # a hold is what is watched for
    async with asyncio.timeout(TIMEOUT_S):
        while not lines.getvalue():
            await asyncio.sleep(0.01)
    _, held_ms, _ = map(float, lines.getvalue().splitlines()[0].split())
    assert held_ms >= LEAST_MS
