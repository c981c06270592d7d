"""Filters of `executions list` and `jobs list`: words, options, completion, counts, and where a look ends."""

import json
from typing import Any

import click
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from cronring.cli.completion import filter_term
from cronring.client.executions import LOOKS_MAX
from cronring.schema.filters import EXECUTION_WORDS, JOB_WORDS
from tests.unit.cli.conftest import Cronring
from tests.unit.cli.fake_api import FakeApi, execution


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["outcome:unsuccessful"], ["--failed"]),
        (["outcome:failed,lost"], ["--outcome", "failed", "--outcome", "lost"]),
        (["outcome:failed outcome:lost"], ["outcome:failed", "--outcome", "lost"]),
        (["module:m", "verb:v", "namespace:ops"], ["--module", "m", "--verb", "v", "--namespace", "ops"]),
        (["label:team=a", "label:tier=1"], ["--label", "team=a", "--label", "tier=1"]),
        (["runner:r1", "sort:slowest"], ["--runner", "r1", "--sort", "slowest"]),
        (["since:2026-11-20", "until:2026-11-20"], ["--since", "2026-11-20", "--until", "2026-11-20"]),
    ],
)
def test_words_say_what_options_say(asked: Cronring, api: FakeApi, words: list[str], options: list[str]) -> None:
    for arguments in (words, options):
        done = asked("executions", "list", *arguments)
        assert done.exit_code == 0, done.stderr
    first, *others = [request for request in api.requests if request.filter.ByteSize() or request.sort]
    assert all(request == first for request in others)
    assert len(others) >= 1


def test_jobs_take_the_same_words(asked: Cronring, api: FakeApi) -> None:
    for arguments in (
        ["status:paused,running", "outcome:unsuccessful", "sort:failures", "label:a=b"],
        ["--status", "paused", "--status", "running", "--failed", "--sort", "failures", "--label", "a=b"],
    ):
        assert asked("jobs", "list", *arguments).exit_code == 0
    first, second = api.requests[0], api.requests[-1]
    assert first == second
    assert (list(first.filter.statuses), list(first.filter.outcomes)) == (["paused", "running"], ["unsuccessful"])
    assert (first.sort, dict(first.filter.labels)) == ("failures", {"a": "b"})


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["executions", "list", "reports"], "write KEY:VALUE, like outcome:failed"),
        (["executions", "list", "since:1h", "--since", "-2h"], "--since and since: are the same"),
        (["executions", "list", "module:a", "--module", "b"], "module: is given twice"),
        (["executions", "list", "--since", "-1h", "until:2h"], "nothing can match"),
        (["jobs", "list", "since:1h"], "'since': is not known here"),
        (["jobs", "list", "status:asleep"], "It is one of pending"),
    ],
)
def test_what_makes_no_sense_is_refused(asked: Cronring, api: FakeApi, arguments: list[str], says: str) -> None:
    done = asked(*arguments)
    assert (done.exit_code, says in done.stderr) == (2, True), done.stderr
    assert not api.requests


def test_counts_say_at_least_where_not_all_were_looked_at(asked: Cronring) -> None:
    assert asked("executions", "list", "--count").stdout == "at least 50,000\n"
    assert asked("executions", "list", "--count", "--job", "billing.refresh").stdout == "50,000\n"
    counted = json.loads(asked("executions", "list", "--count", "-o", "json").stdout)
    assert counted == {"executions": 50_000, "at_least": True}
    assert asked("jobs", "list", "--count", "status:paused").stdout == "1,234\n"


def test_deployments_are_counted_by_one_that_is_listed(asked: Cronring, api: FakeApi) -> None:
    assert asked("deployments", "list", "--count", "--module", "billing", "--active").stdout == "1,234\n"
    request = api.requests[-1]
    assert (request.total, request.page_size, request.module, request.active_only) == (True, 1, "billing", True)
    assert json.loads(asked("deployments", "list", "--count", "-o", "json").stdout) == {"deployments": 1_234}
    assert json.loads(asked("jobs", "list", "--count", "-o", "json").stdout) == {"jobs": 1_234}


def test_a_look_into_a_long_history_ends_and_says_where(asked: Cronring, api: FakeApi) -> None:
    api.looked_to = Timestamp(seconds=1_795_219_200)
    done = asked("executions", "list", "runner:none", "-o", "json")
    assert (done.exit_code, json.loads(done.stdout)) == (0, [])
    assert "looked back to 2026-11-21 00:00:00Z, and no further; go on with --until" in done.stderr
    assert len(api.requests) == LOOKS_MAX


def test_full_pages_are_followed_to_the_limit(asked: Cronring, api: FakeApi) -> None:
    api.executions = [execution(number) for number in range(LOOKS_MAX * 3, 0, -1)]
    api.page_limit = 2
    done = asked("executions", "list", "-o", "json")
    assert (len(json.loads(done.stdout)), done.stderr) == (LOOKS_MAX * 3, "")


def completed(api: FakeApi, typed: str, before: tuple[str, ...] = (), words: Any = EXECUTION_WORDS) -> list[str]:
    param = click.Argument(["filters"], nargs=-1)
    context = click.Context(click.Command("list"))
    context.params = {"filters": before, "controllers": (api.address,)}
    return filter_term(words)(context, param, typed)


def test_words_are_completed_key_by_key_and_value_by_value(api: FakeApi, asked: Cronring) -> None:
    assert completed(api, "o") == ["outcome:", "out_of_memory", "out_of_cpu"]
    assert completed(api, "")[: len(EXECUTION_WORDS)] == [f"{key}:" for key in EXECUTION_WORDS]
    assert completed(api, "fa") == ["failed"]
    assert completed(api, "fa", words=JOB_WORDS) == [], "it may be a status, or an outcome"
    assert completed(api, "outcome:f") == ["outcome:failed"]
    assert completed(api, "status:pa", words=JOB_WORDS) == ["status:paused"]
    assert completed(api, "sort:") == ["sort:newest", "sort:slowest", "sort:latest"]
    assert completed(api, "job:billing.r") == ["job:billing.refresh"]
    assert completed(api, "verb:x") == []
    assert completed(api, "colour:") == []


def test_bash_takes_a_colon_for_a_word(api: FakeApi, asked: Cronring) -> None:
    assert completed(api, ":", ("outcome",))[:2] == ["running", "completed"]
    assert completed(api, "f", ("module", ":", "m", "outcome", ":")) == ["failed"]
    assert completed(api, "billing.r", ("job", ":")) == ["billing.refresh"]
