"""Filters of lists as people write them."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronring.controller.core.orders.states import State
from cronring.schema.execution import Outcome
from cronring.schema.filters import (
    EXECUTION_WORDS,
    JOB_WORDS,
    OUTCOMES,
    STATUSES,
    UNSUCCESSFUL_OUTCOMES,
    ExecutionQuery,
    FilterError,
    JobQuery,
    expand_outcomes,
    parse_execution_query,
    parse_job_query,
    split_terms,
)
from cronring.schema.instant import parse_instant

NOW = parse_instant("2026-11-21T12:00:00Z")
HOUR = 3_600_000_000


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("", ExecutionQuery()),
        ("  \t\n", ExecutionQuery()),
        (
            "outcome:failed label:team=billing module:reports since:1h",
            ExecutionQuery(
                module="reports", labels={"team": "billing"}, outcomes=("failed",), since=NOW - HOUR
            ),
        ),
        ("outcome:failed,lost outcome:running", ExecutionQuery(outcomes=("failed", "lost", "running"))),
        ("outcome:failed,failed outcome:failed", ExecutionQuery(outcomes=("failed",))),
        ("job:ops/m.v:nightly", ExecutionQuery(job="ops/m.v:nightly")),
        ('runner:"a b" sort:slowest', ExecutionQuery(runner="a b", sort="slowest")),
        ('"runner:a b"', ExecutionQuery(runner="a b")),
        ("label:a=1 label:x.org/b=x=y label:c=", ExecutionQuery(labels={"a": "1", "x.org/b": "x=y", "c": ""})),
        ("module:m module:m", ExecutionQuery(module="m")),
        ("since:-90m until:now", ExecutionQuery(since=NOW - 3 * HOUR // 2, until=NOW)),
        (
            "since:2026-03-29 until:2026-03-29",
            ExecutionQuery(since=parse_instant("2026-03-29"), until=parse_instant("2026-03-29T23:59:59Z")),
        ),
        ("namespace:ops verb:v", ExecutionQuery(namespace="ops", verb="v")),
    ],
)  # fmt: skip
def test_executions_are_asked_for_in_one_line(text: str, query: ExecutionQuery) -> None:
    assert parse_execution_query(text, NOW) == query


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("status:paused,failed module:m", JobQuery(module="m", statuses=("paused", "failed"))),
        ("outcome:unsuccessful sort:failures", JobQuery(outcomes=("unsuccessful",), sort="failures")),
    ],
)
def test_jobs_are_asked_for_in_the_same_language(text: str, query: JobQuery) -> None:
    assert parse_job_query(text) == query


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("failed", "'failed' is no term; write KEY:VALUE"),
        ("outcome:", "nothing after its colon"),
        ("outcom:failed", "did you mean outcome:?"),
        ("colour:red", "there are job, namespace"),
        ("outcome:fialed", "did you mean outcome:failed?"),
        ("outcome:failed,", "It is one of running"),
        ("sort:fastest", "did you mean sort:latest?"),
        ("label:team", "write label:KEY=VALUE"),
        ("label:=x", "is no key"),
        ("label:a=1 label:a=2", "no job has both"),
        ("module:a module:b", "nothing can be both"),
        ('runner:"a', "without its partner"),
        ("since:soon", "write since:1h for an hour ago"),
        ("since:+1h", "write since:1h for an hour ago"),
        ("since:1h until:2h", "nothing can match"),
        ("runner:" + "x" * 401, "400 printable characters"),
        ("x:" * 2_001, "at most 4,000"),
        ("module:a\x00b", "printable"),
    ],
)
def test_what_is_no_filter_says_what_to_write(text: str, says: str) -> None:
    with pytest.raises(FilterError) as error:
        parse_execution_query(text, NOW)
    assert says in str(error.value)
    assert len(str(error.value)) < 500


def test_jobs_know_no_instants() -> None:
    with pytest.raises(FilterError, match="since"):
        parse_job_query("since:1h")


def test_words_are_those_of_the_core() -> None:
    assert set(STATUSES) == {state.value for state in State}
    assert set(UNSUCCESSFUL_OUTCOMES) == set(Outcome) - {Outcome.COMPLETED}
    assert expand_outcomes(["unsuccessful", "running", "failed"]) == ("running", *UNSUCCESSFUL_OUTCOMES)
    assert expand_outcomes([]) == ()
    assert set(OUTCOMES) == {*Outcome, "running", "unsuccessful"}
    assert set(EXECUTION_WORDS) == {*ExecutionQuery._fields} - {"labels", "outcomes"} | {"label", "outcome"}
    assert set(JOB_WORDS) == {*JobQuery._fields} - {"labels", "outcomes", "statuses"} | {"label", "outcome", "status"}


WORD = st.text(st.characters(exclude_characters='"', exclude_categories=("Cc", "Cs", "Z")), min_size=1, max_size=9)


@given(st.lists(st.tuples(st.sampled_from(["job", "runner", "module"]), WORD), max_size=5))
def test_terms_come_back_as_they_were_written(terms: list[tuple[str, str]]) -> None:
    assert split_terms(" ".join(f'{key}:"{value}"' for key, value in terms)) == terms
    assert split_terms(" \n".join(f"{key}:{value}" for key, value in terms)) == terms


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(FilterError):
        assert isinstance(parse_execution_query(text, NOW), ExecutionQuery)
