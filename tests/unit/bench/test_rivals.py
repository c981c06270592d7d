"""bench/rivals: turns, what is read from the log of starts, and the table. The rivals aren't installed here."""

import asyncio
import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.rivals.contenders import QUEUES, RECURRING
from bench.rivals.install import FOLDER, Installed
from bench.rivals.measure import NotDrainedError, StartLog, figures, percentile, watch
from bench.rivals.ours import module
from bench.rivals.part import SHORT
from bench.rivals.programs.starts import RECORD, Starts
from bench.rivals.run import Form, lacking, places
from bench.rivals.slots import Slot, arrange, next_cycle
from bench.rivals.table import figures as figures_of
from bench.rivals.table import medians, ratio, table
from cronring.schema.pattern import CronPattern


@pytest.mark.parametrize(
    ("requests", "slots"),
    [
        ([(12, True), (18, False)], [(0, 12, 60), (12, 18, 60)]),
        ([(40, False), (30, False)], [(0, 40, 120), (40, 30, 120)]),
        ([(10, False), (10, True), (5, False)], [(0, 10, 120), (60, 10, 120), (70, 5, 120)]),
        ([(400, False)], [(0, 400, 600)]),  # 7, 8 and 9 minutes don't make up an hour
    ],
)
def test_turns_do_not_overlap_and_a_cycle_divides_the_hour(requests, slots):
    assert [tuple(slot) for slot in arrange(requests)] == slots


def test_no_turns_longer_than_an_hour():
    with pytest.raises(ValueError, match="3700 s"):
        arrange([(3700, False)])


@pytest.mark.parametrize(
    ("slot", "minutes", "second"),
    [
        (Slot(0, 10, 60), "*", 0),
        (Slot(75, 10, 120), ",".join(map(str, range(1, 60, 2))), 15),
        (Slot(599, 1, 600), "9,19,29,39,49,59", 59),
    ],
)
def test_a_slot_as_fields_of_a_pattern_means_its_ticks(slot, minutes, second):
    assert (slot.minutes, slot.second) == (minutes, second)
    start = next_cycle(1_800_000_017.5, slot.cycle_s)
    assert start > 1_800_000_017
    assert start % slot.cycle_s == 0
    pattern = CronPattern.parse(f"{slot.second} {slot.minutes} * * * *")
    tick = slot.tick(start)
    assert pattern.next_second(tick - 1) == tick
    assert pattern.next_second(tick) == tick + slot.cycle_s


def test_the_log_of_starts_is_read_as_it_grows_and_only_whole_records(tmp_path):
    log = StartLog(tmp_path / "starts")
    assert log.new() == []
    before = time.time()
    Starts(str(tmp_path / "starts")).note(7)
    ((instant, number),) = log.new()
    assert number == 7
    assert before <= instant <= time.time()
    whole = RECORD.pack(1.5, 8)
    with (tmp_path / "starts").open("ab", buffering=0) as file:
        file.write(whole[:5])
        assert log.new() == []
        file.write(whole[5:])
    assert log.new() == [(1.5, 8)]
    assert log.new() == []


def test_node_writes_the_same_log(tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("no Node")
    log = tmp_path / "starts"
    library = FOLDER / "programs" / "starts.mjs"
    program = f"import {{ starts }} from {json.dumps(str(library))}; starts({json.dumps(str(log))})(41)"
    before = time.time()
    subprocess.run([node, "--input-type=module", "-e", program], check=True)
    ((instant, number),) = StartLog(log).new()
    assert number == 41
    assert before - 0.01 <= instant <= time.time() + 0.01


@pytest.mark.parametrize(
    ("values", "share", "found"), [([1.0], 0.5, 1.0), ([1.0, 2.0], 0.5, 1.0), ([*range(1, 101)], 0.99, 99)]
)
def test_percentile(values, share, found):
    assert percentile(values, share) == found


def test_figures_count_from_the_tick_to_the_last_end():
    starts = [(100.0 + number / 1000, number) for number in range(1, 101)]
    burst = figures(starts, 100, 100.0, 100.5, {"others_percent": 1.2, "own_us": 7.0})
    assert (burst.executions, burst.drained_ms, burst.per_second) == (100, 500.0, 200)
    assert (burst.first_ms, burst.p50_ms, burst.p99_ms, burst.max_ms) == (1.0, 50.0, 99.0, 100.0)
    assert (burst.others_percent, burst.own_us, burst.postgres_us) == (1.2, 7.0, 0.0)


class Books:
    """A connection whose contender has ended everything at the third question."""

    def __init__(self, busy):
        self.busy = busy

    async def fetchval(self, _):
        self.busy -= 1
        return self.busy > 0


def watched(path, books, jobs, seconds):
    return asyncio.run(watch(StartLog(path), books, "", jobs, time.time() + seconds))


def test_a_burst_is_over_when_each_job_has_started_and_the_books_say_so(tmp_path):
    path, books = tmp_path / "starts", Books(busy=3)
    for number in (0, 1, 1):  # one of them twice
        Starts(str(path)).note(number)
    starts, drained = watched(path, books, 2, 10)
    assert [number for _, number in starts] == [0, 1, 1]
    assert books.busy == 0
    assert drained >= max(instant for instant, _ in starts)


def test_a_job_that_runs_twice_does_not_stand_for_another(tmp_path):
    for number in (0, 0):
        Starts(str(tmp_path / "starts")).note(number)
    with pytest.raises(NotDrainedError, match="1 of 2 had started"):
        watched(tmp_path / "starts", Books(busy=0), 2, 0.02)


def test_books_that_never_end_are_not_waited_for(tmp_path):
    Starts(str(tmp_path / "starts")).note(0)
    with pytest.raises(NotDrainedError, match="not ended"):
        watched(tmp_path / "starts", Books(busy=10**9), 1, 0.02)


def burst(per_second, **changes):
    known = {
        "jobs": 10,
        "executions": 10,
        "drained_ms": 1.0,
        "first_ms": 1.0,
        "p50_ms": 1.0,
        "p99_ms": 1.0,
        "max_ms": 1.0,
    }
    return known | {"per_second": per_second, "others_percent": 0.5, "own_us": 90.0, "postgres_us": 50.0} | changes


def result(**rounds):
    part = {
        "name": "recurring", "shape": {"jobs": 10}, "rounds": rounds, "notes": {"slow": "alpha"},
        "processes": dict.fromkeys(rounds, 6), "left_out": {"absent": "no Node 22.18 or newer"},
    }  # fmt: skip
    words = {"name": "rivals", "shape": {"jobs": 10}, "machine": {"date": "today"}, "note_us": {"Python": 1.1}}
    return words | {"versions": {"slow": "4.0"}, "parts": [part]}


def test_the_ratio_is_that_of_each_round():
    assert ratio([burst(100), burst(1000), None], [burst(50), burst(100), burst(1)]) == 6.0
    assert ratio([None], [burst(1)]) is None
    assert medians([]) == {}


def test_the_table_has_the_fastest_first_and_says_what_is_left_out():
    text = table(result(slow=[burst(50), burst(40)], cronring=[burst(1000), burst(2000)]))
    rows = [re.sub(r" +", " ", line) for line in text.splitlines() if line.startswith("| ")]
    assert [row.split(" | ")[0] for row in rows[1:]] == ["| cronring", "| slow 4.0", "| absent"]
    assert "| 35.00 | 6 | 2 | alpha |" in rows[2]
    assert rows[3].endswith(" - | - | - | - | - | - | - | - | - | - | 0 | no Node 22.18 or newer |")
    assert "1.1 µs in Python" in text


@pytest.mark.parametrize(
    ("changes", "said"), [({"executions": 12}, "2 ran twice"), ({"first_ms": -3.0}, "early"), ({}, "alpha")]
)
def test_the_table_says_what_is_odd_about_a_contender(changes, said):
    assert said in table(result(slow=[burst(50, **changes)]))


def test_rivals_that_the_machine_can_not_run_are_left_out_with_the_reason():
    assert set(lacking(QUEUES, Installed(node_lacks="no Node"))) == {"pg-boss", "graphile-worker"}
    pythons = {"pgqueuer", "procrastinate", "apscheduler"}
    assert set(lacking(RECURRING, Installed(python_lacks="no registry"))) == pythons
    assert lacking(RECURRING, Installed(cron_lacks="not root")) == {"pg_cron": "not root"}


def test_the_short_form_fits_into_cycles_of_a_minute():
    assert list(lacking(RECURRING, Installed(), short=True)) == ["pg_cron"]
    there = [spec for spec in RECURRING if spec.name != "pg_cron"]
    assert {slot.cycle_s for slot in places(there, SHORT).values()} == {60}
    assert places(RECURRING, Form())["cronring"].cycle_s > 60


def test_figures_name_the_best_rival_and_us_by_it():
    rounds = {"slow-one": [burst(50), burst(40)], "quick": [burst(100), None], "cronring": [burst(1000), burst(2000)]}
    found = figures_of(result(**rounds)["parts"])
    assert found["slow_one_recurring_per_second"] == 45
    assert found["best_rival_recurring_per_second"] == 100
    assert found["recurring_by_best_ratio"] == 10
    assert (found["cronring_recurring_own_us"], found["cronring_recurring_postgres_us"]) == (90, 50)
    assert "recurring_by_best_ratio" not in figures_of(result(cronring=[burst(1)])["parts"])


def test_the_table_says_who_was_given_fewer_jobs():
    assert "alpha; 4 of them" in table(result(slow=[burst(50, jobs=4)]))


def test_each_rival_has_its_program_and_its_version_is_pinned():
    pins = (FOLDER / "requirements.txt").read_text()
    packages = json.loads((FOLDER / "package.json").read_text())["dependencies"]
    locked = json.loads((FOLDER / "package-lock.json").read_text())["packages"]
    for spec in RECURRING + QUEUES:
        if spec.name == "pg_cron":
            continue  # the system's
        suffix = ".mjs" if spec.node else ".py"
        assert (FOLDER / "programs" / f"{spec.name.replace('-', '_')}{suffix}").exists()
        if spec.node:
            assert locked[f"node_modules/{spec.name}"]["version"] == packages[spec.name]
        else:
            assert re.search(rf"^{spec.name}==\S+$", pins, re.MULTILINE)


def test_our_verbs_write_the_same_log(tmp_path):
    text = module(tmp_path / "starts", "cron", "0 * * * * *", range(3, 5))
    call = "\nimport asyncio\nasyncio.run(job_3())\nasyncio.run(job_4())\n"
    subprocess.run([sys.executable, "-c", text + call], check=True, cwd=Path(__file__).resolve().parents[3])
    assert [number for _, number in StartLog(tmp_path / "starts").new()] == [3, 4]
