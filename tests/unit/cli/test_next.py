"""`cronring next`: offline, in UTC and on a zone's clocks, and errors that point."""

import json

from cronring.schema.zone import zone_data_version
from tests.unit.cli.conftest import Cronring


def test_ticks(cronring: Cronring) -> None:
    done = cronring("next", "0 6 1 * *", "-n", "3", "--from", "2026-12-15")
    assert done.stdout.splitlines() == [
        "2027-01-01T06:00:00Z  Fri",
        "2027-02-01T06:00:00Z  Mon",
        "2027-03-01T06:00:00Z  Mon",
    ]


def test_from_another_zone(cronring: Cronring) -> None:
    done = cronring("next", "12h", "-n", "1", "--from", "2026-12-15T01:00:00+02:00", "-o", "json")
    assert json.loads(done.stdout) == [
        {"tick": "2026-12-15T00:00:00Z", "local": "2026-12-15T00:00:00+00:00", "note": ""}
    ]


def test_without_from_it_starts_now(cronring: Cronring) -> None:
    assert len(cronring("next", "5s").stdout.splitlines()) == 5


def test_a_bounded_year_ends(cronring: Cronring) -> None:
    done = cronring("next", "0 0 1 1 * 2028", "--from", "2027-01-01")
    assert done.stdout.splitlines() == ["2028-01-01T00:00:00Z  Sat"]
    assert "never fires again" in done.stderr


def test_a_bad_pattern_points_at_the_fault(cronring: Cronring) -> None:
    done = cronring("next", "0 6 61 * *")
    assert done.exit_code == 1
    message, pattern, caret, *_ = done.stderr.splitlines()
    assert message.startswith("error: ")
    assert pattern == "  0 6 61 * *"
    assert caret.index("^") == pattern.index("61")


def test_a_bad_pattern_says_what_to_write_instead(cronring: Cronring) -> None:
    done = cronring("next", "@daily")
    assert done.exit_code == 1
    assert "write instead: 0 0 * * *" in done.stderr


def test_hostile_patterns_stay_readable(cronring: Cronring) -> None:
    done = cronring("next", "\x1b[31m" + "9" * 10_000)
    assert done.exit_code == 1
    assert "\x1b" not in done.stderr
    assert len(done.stderr) < 2000


def test_ticks_on_the_clocks_of_a_zone(cronring: Cronring) -> None:
    arguments = ["30 2 * * *", "--timezone", "Europe/Berlin", "--from", "2027-03-27"]
    assert cronring("next", *arguments, "-n", "3").stdout.splitlines() == [
        "2027-03-27T01:30:00Z  Sat 2027-03-27 02:30:00 +01:00",
        "2027-03-28T01:00:00Z  Sun 2027-03-28 03:00:00 +02:00  makes up for 02:30, which the clocks skip",
        "2027-03-29T00:30:00Z  Mon 2027-03-29 02:30:00 +02:00",
    ]
    skipping = cronring("next", *arguments, "-n", "2", "--dst-gap", "skip").stdout.splitlines()
    assert skipping[1].startswith("2027-03-29T00:30:00Z")
    autumn = ["30 2 * * *", "--timezone", "Europe/Berlin", "--from", "2027-10-31", "--dst-overlap", "both", "-n", "2"]
    assert [line.rpartition("  ")[2] for line in cronring("next", *autumn).stdout.splitlines()] == [
        "the first 02:30 of 2 on this day",
        "the second 02:30 of 2 on this day",
    ]


def test_whose_rules_of_the_zone_they_are(cronring: Cronring) -> None:
    zoned = cronring("next", "30 2 * * *", "--timezone", "Europe/Berlin")
    assert zoned.stderr == f"on the clocks of Europe/Berlin, by tzdata {zone_data_version()}\n"
    assert cronring("next", "30 2 * * *").stderr == ""


def test_from_is_on_the_clocks_of_the_zone(cronring: Cronring) -> None:
    done = cronring("next", "0 * * * *", "-n", "1", "--timezone", "Asia/Tokyo", "--from", "2027-01-01T00:30")
    assert done.stdout == "2026-12-31T16:00:00Z  Fri 2027-01-01 01:00:00 +09:00\n"


def test_intervals_count_from_the_start(cronring: Cronring) -> None:
    done = cronring("next", "every 90m", "-n", "2", "--from", "2027-01-01T00:07:00Z")
    assert done.stdout.splitlines() == ["2027-01-01T01:37:00Z  Fri", "2027-01-01T03:07:00Z  Fri"]


def test_manual_jobs_have_no_ticks(cronring: Cronring) -> None:
    done = cronring("next", "manual")
    assert (done.stdout, "cronring jobs trigger" in done.stderr) == ("", True)


def test_one_instant(cronring: Cronring) -> None:
    done = cronring("next", "at 2027-03-01T08:00:00Z", "--from", "2027-01-01")
    assert done.stdout.splitlines() == ["2027-03-01T08:00:00Z  Mon"]
    assert "never fires again" in done.stderr


def test_zones_and_rules_that_make_no_sense(cronring: Cronring) -> None:
    wrong = cronring("next", "Mon", "--timezone", "Europe/Berln")
    assert (wrong.exit_code, "Europe/Berlin" in wrong.stderr) == (1, True)
    pointless = cronring("next", "every 30m", "--dst-gap", "skip")
    assert (pointless.exit_code, "--dst-gap" in pointless.stderr) == (1, True)
