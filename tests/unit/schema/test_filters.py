"""Filters of lists as people write them."""

import contextlib
from functools import partial

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
    Unfinished,
    contained,
    expand_outcomes,
    parse_execution_query,
    parse_job_query,
    split_terms,
    suggested,
    term_of,
    unfinished,
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
        ("contains:bill contains:CLOSE bill", JobQuery(contains=("bill", "CLOSE"))),
        ("close_mon paused 50%", JobQuery(statuses=("paused",), contains=("close_mon", "50%"))),
        ("contains:paused", JobQuery(contains=("paused",))),
        ("shop.prints:late", JobQuery(contains=("shop.prints:late",))),
        ("contains:prints:late east/shop.prints:a", JobQuery(contains=("prints:late", "east/shop.prints:a"))),
    ],
)
def test_jobs_are_asked_for_in_the_same_language(text: str, query: JobQuery) -> None:
    assert parse_job_query(text) == query


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("reports", "'reports' is no term; write KEY:VALUE"),
        ("fialed", "did you mean failed?"),
        (":failed", "nothing before its colon"),
        ('""', "'' is no term"),
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
        ('runner:"a', "lacks its partner"),
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


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("module:m outcom:failed", 9),
        ('  runner:"a b"   fialed', 17),
        ('module:m runner:"a', 16),
        ("module:a\tlabel:team", 9),
        ("module:a module:b", 9),
        ("x" * 4_001, None),
        ("since:1h until:2h", None),
    ],
)
def test_an_error_says_where_its_term_begins(text: str, at: int | None) -> None:
    with pytest.raises(FilterError) as error:
        parse_execution_query(text, NOW)
    assert error.value.at == at


def test_a_word_alone_is_what_it_can_only_be() -> None:
    assert parse_execution_query("failed label:workspace=ws_3 running", NOW) == ExecutionQuery(
        labels={"workspace": "ws_3"}, outcomes=("failed", "running")
    )
    assert parse_job_query("paused timed_out") == JobQuery(statuses=("paused",), outcomes=("timed_out",))
    with pytest.raises(FilterError, match="failed may be outcome:failed or status:failed; write which"):
        parse_job_query("failed")


@pytest.mark.parametrize(
    ("text", "typed", "terms"),
    [
        ("", Unfinished(0, "", ""), None),
        ("ru", Unfinished(0, "", "ru"), ["runner:", "running"]),
        ("failed mo", Unfinished(7, "", "mo"), ["module:"]),
        ("failed ", Unfinished(7, "", ""), None),
        ("outcome:ti", Unfinished(0, "outcome", "ti"), ["outcome:timed_out"]),
        ('x:1 job:"a b', Unfinished(4, "job", "a b"), []),
        ("colour:", Unfinished(0, "colour", ""), []),
    ],
)
def test_what_is_being_typed_is_found(text: str, typed: Unfinished, terms: list[str] | None) -> None:
    assert unfinished(text) == typed
    found = suggested(typed, EXECUTION_WORDS)
    assert found[:10] == [f"{key}:" for key in EXECUTION_WORDS] if terms is None else found == terms


def test_what_is_suggested_is_read() -> None:
    assert term_of("runner", "a b") == 'runner:"a b"'
    for words, read in ((JOB_WORDS, parse_job_query), (EXECUTION_WORDS, partial(parse_execution_query, now=NOW))):
        for word in suggested(Unfinished(0, "", ""), words):
            assert word.endswith(":") or read(word)
        for key in words:
            assert all(read(term) for term in suggested(Unfinished(0, key, ""), words))


def test_any_other_word_of_jobs_is_looked_for_in_their_keys() -> None:
    assert parse_job_query("fail paus") == JobQuery(contains=("fail", "paus"))
    with pytest.raises(FilterError, match="is no term"):
        parse_job_query('""')
    with pytest.raises(FilterError, match="more than 16 texts"):
        parse_job_query(" ".join(f"q{number}" for number in range(17)))


def test_a_key_contains_all_texts_in_any_case_of_a_to_z() -> None:
    assert contained("billing.Close_Month:Ä", ("CLOSE", "bill", "Ä"))
    assert not contained("billing.close", ("close", "month"))
    assert not contained("billing.Ä", ("ä",)), "PostgreSQL's collation lowers A to Z alone"
    assert contained("anything", ())


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
    assert [term[:2] for term in split_terms(" ".join(f'{key}:"{value}"' for key, value in terms))] == terms
    assert [term[:2] for term in split_terms(" \n".join(f"{key}:{value}" for key, value in terms))] == terms


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(FilterError):
        assert isinstance(parse_execution_query(text, NOW), ExecutionQuery)
