"""Webhooks from the command line."""

import pytest

from cronring.controller.api.problems import InvalidRequest
from tests.unit.cli.conftest import Cronring
from tests.unit.cli.fake_api import FakeApi

URL = "https://example.com/hooks"
NONE = "no job matches now"


@pytest.mark.parametrize(
    ("options", "matches"),
    [
        ((), True),
        (("--job", "billing.refresh"), True),
        (("--module", "billing"), True),
        (("--job", "billing.refesh"), False),
    ],
)
def test_a_webhook_that_is_told_of_no_job_is_made_and_says_so(
    asked: Cronring, options: tuple[str, ...], matches: bool
) -> None:
    done = asked("webhook", "add", "pager", URL, *options)
    assert done.exit_code == 0
    assert "whsec_1" in done.stdout
    assert (NONE in done.stderr) is not matches


def test_outcomes_and_events_are_asked_for_by_name(asked: Cronring, api: FakeApi) -> None:
    options = ("--event", "completed", "--event", "failed", "--outcome", "lost", "--label", "team=billing")
    assert asked("webhook", "add", "pager", URL, *options).exit_code == 0
    request = next(each for each in api.requests if hasattr(each, "outcomes") and hasattr(each, "url"))
    assert (list(request.events), list(request.outcomes)) == (["completed", "failed"], ["lost"])
    assert dict(request.labels) == {"team": "billing"}
    api.refusal = InvalidRequest([("outcomes", "'lots' is none of failed")])
    assert "--outcome: 'lots' is none of failed" in asked("webhook", "add", "p", URL, "--outcome", "lots").stderr


def test_what_is_wrong_with_a_reason_names_its_option(asked: Cronring, api: FakeApi) -> None:
    api.refusal = InvalidRequest([("reasons", "'overlp' is none")])
    assert "--reason: 'overlp' is none" in asked("webhook", "add", "pager", URL, "--reason", "overlp").stderr
