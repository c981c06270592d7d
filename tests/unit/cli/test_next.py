"""`cronring next`: offline, in UTC, and errors that point."""

import json

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
    assert json.loads(done.stdout) == ["2026-12-15T00:00:00Z"]


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
