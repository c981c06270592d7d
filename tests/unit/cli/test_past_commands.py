"""`cronring timeline`, and `cluster members --at`: the past on 80 places, as JSON and as Markdown."""

import json

from tests.unit.cli.conftest import Cronring


def test_a_timeline_fits_a_terminal_and_is_whole_as_json(asked: Cronring) -> None:
    done = asked("timeline")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "Controller controller-1 was lost: its lease ran out." in lines[1]
    rows = json.loads(asked("timeline", "-o", "json").stdout)
    assert [row["kind"] for row in rows] == ["controller_lost", "pause"]
    assert rows[1]["text"].endswith("[it] fails *now*")


def test_markdown_is_a_list_in_which_names_stay_names(asked: Cronring) -> None:
    first, second = asked("timeline", "--markdown").stdout.splitlines()
    assert first.endswith(r"token:ann paused billing.close\_month: \[it\] fails \*now\*")
    assert first.startswith("- 2026-")
    assert "was lost" in second
    assert asked("timeline", "--markdown", "-o", "json").exit_code == 2


def test_members_of_then_say_what_became_of_them_and_what_was_late(asked: Cronring) -> None:
    done = asked("cluster", "members", "--at", "2026-03-29T02:30")
    assert done.exit_code == 0
    assert "controller-1" in done.stdout
    assert "lost" in done.stdout
    assert "began 2s late. No runner was connected." in done.stdout
    assert "is to come" in asked("cluster", "members", "--at", "+1h").stderr
