"""Commands that ask, where nobody can answer: wrong usage (2), and what to give instead."""

import click
import pytest

from cronring.cli import consent
from tests.unit.cli.conftest import Cronring
from tests.unit.cli.fake_api import FakeApi, changes


@pytest.mark.parametrize(
    "arguments",
    [
        ["queues", "replay", "dq", "--all"],
        ["queues", "remove", "dq", "--all"],
        ["sets", "delete", "billing-prod"],
        ["drill", "kill-owner"],
        ["jobs", "delete", "--label", "a=b"],
        ["jobs", "pause", "--module", "billing"],
    ],
)
def test_without_a_terminal_it_is_wrong_usage_and_names_yes(
    asked: Cronring, api: FakeApi, arguments: list[str]
) -> None:
    api.fate = {"billing.refresh": ""}  # of what matches
    done = asked(*arguments)
    assert (done.exit_code, "--yes" in done.stderr, "Do it?" in done.stderr) == (2, True, False), done.stderr
    assert all(getattr(request, "dry_run", False) for request in api.requests) or not changes(api)


def test_what_strangers_wrote_stays_one_line_of_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consent, "is_terminal", lambda: False)
    with pytest.raises(click.UsageError) as refused:
        consent.confirm(["would delete a\x1b[2J"])
    assert "\x1b" not in refused.value.message
