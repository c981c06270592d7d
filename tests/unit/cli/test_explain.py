"""`cronring explain` and `cronring convert`: what a schedule comes to, and what is equal to it."""

import json

import pytest

from cronring.schema.zone import zone_data_version
from tests.unit.cli.conftest import Cronring

BERLIN = ["--timezone", "Europe/Berlin", "--from", "2026-11-21"]


def test_explain(cronring: Cronring) -> None:
    done = cronring("explain", "30 2 * * *", *BERLIN)
    assert done.exit_code == 0
    said = dict(line.split("  ", 1) for line in done.stdout.splitlines()[:5])
    assert said["runs"].strip() == "at 02:30 every day, Europe/Berlin time"
    assert said["timezone"].strip() == f"Europe/Berlin   (tzdata {zone_data_version()})"
    assert "fixed times of the day" in done.stdout
    assert "1 on each of the next 365 days" in done.stdout
    assert done.stdout.count("02:30:00 +01:00") == 10
    assert [line.strip() for line in done.stdout.splitlines()[-2:]] == [
        "2027-03-28, 1 hour forward (02:00 -> 03:00): 02:30 does not exist; it runs at 03:00, the first instant after",
        "2027-10-31, 1 hour back (03:00 -> 02:00): 02:30 comes twice and runs once, the first time",
    ]


@pytest.mark.parametrize(
    ("schedule", "starts"),
    [
        ("0 6 * * *", 'on its ticks (with jitter="auto": up to 30s later)'),
        ("every 30m", 'on its ticks (with jitter="auto": up to 3s later)'),
        ("* * * * *", 'on its ticks (with jitter="auto": the same)'),
        ("manual", None),
    ],
)
def test_explain_says_when_runs_start(cronring: Cronring, schedule: str, starts: str | None) -> None:
    said = cronring("explain", schedule, "--from", "2026-11-21").stdout
    assert (f"starts       {starts}\n" in said) if starts else "starts" not in said
    assert max(map(len, said.splitlines())) <= 80


def test_explain_in_utc_says_nothing_of_clocks(cronring: Cronring) -> None:
    done = cronring("explain", "*/15 9-17 * * 1-5")
    assert "every 15 minutes of hours 9 to 17 from Monday to Friday" in done.stdout
    assert "0 to 36, 25." in done.stdout
    assert "clocks" not in done.stdout


def test_explain_says_what_the_given_rules_do(cronring: Cronring) -> None:
    done = cronring("explain", "30 2 * * *", *BERLIN, "--dst-gap", "skip", "--dst-overlap", "both")
    assert "a skipped one does not run, a repeated one both times" in done.stdout
    assert "a skipped one runs after, a repeated one once\n" in cronring("explain", "30 2 * * *", *BERLIN).stdout
    assert "only the second" in cronring("explain", "*/5 * * * *", *BERLIN, "--dst-overlap", "second").stdout


def test_explain_json(cronring: Cronring) -> None:
    found = json.loads(cronring("explain", "30 2 * * *", *BERLIN, "--dst-gap", "skip", "-o", "json").stdout)
    assert found["zone_data"] == zone_data_version()
    assert found["per_day"] == {"least": 0, "average": 364 / 365, "most": 1, "days": 365}
    assert (found["kind"], len(found["ticks"])) == ("fixed-time", 10)
    assert [(change["at"], change["moved_ms"], change["times"]) for change in found["clock_changes"]] == [
        ("2027-03-28T01:00:00Z", 3_600_000, 1),
        ("2027-10-31T01:00:00Z", -3_600_000, 1),
    ]


def test_explain_what_never_ticks(cronring: Cronring) -> None:
    done = cronring("explain", "0 0 29 2 *", "--from", "2026-11-21")
    assert "none in the next 365 days" in done.stdout
    assert "2028-02-29T00:00:00Z" in done.stdout
    assert "  none" in cronring("explain", "manual").stdout


def test_explain_points_at_faults(cronring: Cronring) -> None:
    done = cronring("explain", "0 6 61 * *")
    assert done.exit_code == 1
    message, pattern, caret, *_ = done.stderr.splitlines()
    assert message.startswith("error: ")
    assert caret.index("^") == pattern.index("61")


CONVERSIONS = [
    ("0 */6 * * *", 0, "every 6h\n", '@every("6h", anchor="1970-01-01T00:00:00Z")'),
    ("*/25 * * * *", 1, "none: its ticks are uneven", "near to it: every 25m"),
    ("every 6h", 0, "6h\n", "the same ticks in UTC as every 6h"),
    ("every 90m", 1, "none: ", "near to it: 1h, or 2h"),
]


@pytest.mark.parametrize(("schedule", "code", "start", "says"), CONVERSIONS)
def test_convert(cronring: Cronring, schedule: str, code: int, start: str, says: str) -> None:
    done = cronring("convert", schedule)
    assert done.exit_code == code
    assert done.stdout.startswith(start)
    assert says in done.stdout


def test_convert_json(cronring: Cronring) -> None:
    found = json.loads(cronring("convert", "30 */6 * * *", "-o", "json").stdout)
    assert (found["equal"], found["anchor"], found["nearest"]) == ("every 6h", "1970-01-01T00:30:00Z", [])


def test_what_can_not_be_converted(cronring: Cronring) -> None:
    assert "nothing to convert" in cronring("convert", "manual").stderr
    assert "write instead" in cronring("convert", "@daily").stderr
