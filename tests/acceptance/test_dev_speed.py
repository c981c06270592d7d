"""`cronring dev --speed`, as a user starts it: real children, virtual days."""

import json
import re
from pathlib import Path

import pytest

from tests.acceptance.dev import Dev

MODULE = """
from cronring import Context, cron, every


@cron("30 2 * * *", timezone="Europe/Berlin", jitter="off")
async def nightly(ctx: Context) -> None:
    print(f"{ctx.local_tick:%H:%M} {ctx.trigger} {ctx.missed} {type(ctx).__module__}")


@cron("0 * * * *", jitter="off", retries=1, backoff="1m")
def hourly(ctx: Context) -> None:
    if ctx.tick.hour == 3 and ctx.attempt == 1:
        raise ConnectionError("hung up")


@every("10m", jitter="off")
async def often() -> None:
    ...


@cron("15 * * * *", jitter="off")
async def long() -> None:
    ...
"""


@pytest.fixture
def module(folder: Path) -> Path:
    file = folder / "shop.py"
    file.write_text(MODULE)
    return file


def played(module: Path, folder: Path, *arguments: str, code: int = 0) -> list[str]:
    with Dev([str(module), *arguments], folder) as dev:
        assert dev.finish() == code, dev.errors.read_text()
        assert dev.wait_gone(0) == [], "its children end with it"
        return dev.lines


def test_a_weekend_in_seconds(module: Path, folder: Path) -> None:
    lines = played(
        module, folder, "--speed", "max", "--start", "2026-03-28T00:00Z", "--for", "2d", "-o", "json",
        "--outage", "database@2026-03-28T05:30+3h", "--outage", "runners@2026-03-29T10:30+90m",
        "--duration", "long=50m",
    )  # fmt: skip
    told = [json.loads(line) for line in lines]
    nights = [each for each in told if each.get("job") == "shop.nightly" and each["event"] == "execution"]
    assert [each["tick"] for each in nights] == ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z"]
    assert nights[1]["output"] == "03:00 schedule 0 cronring.context\n"
    jobs = {job["job"]: job for job in told[-1]["jobs"]}
    assert jobs["shop.often"]["due"] == 288
    hourly = jobs["shop.hourly"]
    assert (hourly["due"], hourly["ran"], hourly["skipped"]) == (48, 45, {"no_runner": 1, "superseded": 2})
    assert (hourly["retries"], hourly["caught_up"], hourly["outcomes"]) == (2, 1, {"completed": 45, "failed": 2})
    assert jobs["shop.long"]["outcomes"]["timed_out"] > 40, "50 minutes are more than the timeout"
    assert (
        "ran 2026-03-29T03:00:00+02:00: makes up for 02:30, which the clocks skip"
        in jobs["shop.nightly"]["clock_changes"]
    )
    for job in jobs.values():
        assert job["due"] == job["ran"] + sum(job["skipped"].values()) + job["open"], job
        assert job["open"] <= 1, job
    instants = [each["at"][:19] for each in told[:-1]]  # to the second: reports take some real time to come
    assert instants == sorted(instants)


def test_lines_for_people(module: Path, folder: Path) -> None:
    lines = played(module, folder, "--speed", "36000x", "--start", "2026-10-24T22:00Z", "--for", "6h")
    assert any(line.startswith("2026-10-25T00:30:00") and " execution " in line for line in lines), lines
    text = "\n".join(lines)
    assert "shop.nightly  (30 2 * * *, Europe/Berlin)\n  ticks due 1 | ran 1 | skipped 0\n" in text
    assert "clocks: 2026-10-25, 1 hour back (03:00 -> 02:00): 02:30 comes twice and runs once, the first time" in text
    assert "ticks due 49 | executed 49 | skipped 0 | retries 1 | not decided yet: 0" in text
    assert lines[-1].startswith("6h of virtual time in ")


def test_it_is_paced(module: Path, folder: Path) -> None:
    lines = played(module, folder, "--speed", "3600x", "--start", "2026-03-28T00:00Z", "--for", "3h", "-o", "json")
    assert json.loads(lines[-1])["real_ms"] >= 3_000


MAKERS = """
from cronring import Context, JobRefused, cron, verb


@verb
def greet(payload: str) -> None:
    print("hello", payload)


@cron("0 1 * * *", jitter="off")
async def sign_up(ctx: Context) -> None:
    key = await ctx.jobs.create("makers.greet", f"day-{ctx.tick:%d}", cron="0 * * * *", payload="you", jitter="off")
    await ctx.jobs.run(key, payload="first")


@cron("30 5 * * *", jitter="off")
def sign_off(ctx: Context) -> None:
    print(ctx.jobs.get(f"makers.greet:day-{ctx.tick:%d}").last_outcome)
    ctx.jobs.delete(f"makers.greet:day-{ctx.tick:%d}")
    try:
        ctx.jobs.delete("makers.sign_off")
    except JobRefused as error:
        print(error.reason)
"""


def test_verbs_make_jobs_that_run_and_delete_them(folder: Path) -> None:
    file = folder / "makers.py"
    file.write_text(MAKERS)
    lines = played(file, folder, "--speed", "max", "--start", "2026-03-28T00:00Z", "--for", "12h", "-o", "json")
    runs = [told for told in map(json.loads, lines) if told.get("event") == "execution"]
    by_job: dict[str, list[str]] = {}
    for each in runs:
        assert each["outcome"] == "completed", each
        by_job.setdefault(each["job"], []).append(each.get("output", ""))
    assert by_job["makers.greet:day-28"] == ["hello first\n", *["hello you\n"] * 4]
    assert by_job["makers.sign_off"] == ["completed\nCONFLICT\n"]


def test_ctrl_c_ends_it_with_the_books(module: Path, folder: Path) -> None:
    with Dev([str(module), "--speed", "600x", "--start", "2026-03-28T00:00Z"], folder) as dev:
        dev.wait_for(lambda line: " execution " in line)
        dev.interrupt()
        assert dev.finish() == 0
        assert dev.wait_gone(0) == []
    assert "of virtual time in" in dev.lines[-1]
    assert "not decided yet" in dev.lines[-2]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--start", "2026-03-28"], "--start needs --speed"),
        (["--speed", "fast"], "'fast' is no speed"),
        (["--speed", "max"], "--speed max needs --for"),
        (["--speed", "10x", "--controllers", "2"], "--controllers doesn't go with --speed"),
        (["--speed", "10x", "--outage", "disk@2026-03-28+1h"], "there are database, controllers, runners"),
        (["--speed", "10x", "--duration", "long"], "write VERB=LENGTH"),
    ],
)
def test_what_is_refused(module: Path, folder: Path, arguments: list[str], said: str) -> None:
    with Dev([str(module), *arguments], folder) as dev:
        assert dev.finish() == 2
        assert said in dev.errors.read_text()


def test_a_verb_that_really_sleeps_is_named_once(folder: Path) -> None:
    file = folder / "sleeps.py"
    # It is the author's verb that sleeps: being held up by it is what is told. The test waits for nothing.
    file.write_text(
        "import time\nfrom cronring import every\n@every('10m', jitter='off')\ndef nap() -> None: time.sleep(1.5)\n"
    )
    lines = played(file, folder, "--speed", "3600x", "--for", "40m", "--plain")
    (held,) = [line for line in lines if "held_by_runs" in line]
    assert "verb=nap" in held
    assert "--duration nap=LENGTH" in held
    assert re.search(r"of virtual time in [0-9.hms]+ \([0-9,]+x\)", lines[-2])
    assert "most of that went by for real" in lines[-1]
