"""What the contract's fields come to: schedule, policy and payload of one of our jobs."""

from typing import Any

import pytest

from cronring.controller.interval_jobs.problems import IntervalRefused
from cronring.controller.interval_jobs.settings import IntervalSettings, interval_settings
from cronring.controller.interval_jobs.specs import is_recurring, payload_of, policy_of, schedule_of
from cronring.controller.interval_jobs.terms import kept_terms, merged, of_kept, read_given, verb_of
from cronring.schema.keys import VerbName
from cronring.schema.module import DataField, DataType, Module, Verb
from cronring.schema.policy import parse_policy
from cronring.schema.retry import backoff_us

CRAWLER = interval_settings("crawling/crawler.fetch")
SITE = DataType("Site", (DataField("url", "str"), DataField("depth", "int", True, "1")))
MODULE = Module("crawler", (), types=(SITE,))
S = 1_000_000


@pytest.mark.parametrize(
    ("terms", "schedule"),
    [
        ({}, "manual"),
        ({"schedule_enabled": True}, "manual"),
        ({"interval_minutes": 6}, "every 6m"),
        ({"interval_minutes": 6, "interval_type": "hours"}, "every 6h"),
        ({"interval_minutes": 7, "interval_type": "days"}, "every 7d"),
        ({"interval_minutes": 1_440}, "every 1d"),
        ({"interval_minutes": 90}, "every 1h30m"),
        ({"schedule_time": "0 6 * * *"}, "0 6 * * *"),
        ({"schedule_time": " 0  6 * * * "}, "0 6 * * *"),
        ({"interval_minutes": 5, "schedule_time": "0 6 * * *"}, "every 5m"),
        ({"interval_minutes": 5, "schedule_enabled": False}, "manual"),
        ({"schedule_time": "0 6 * * *", "schedule_enabled": False}, "manual"),
    ],
)
def test_schedules(terms: dict[str, Any], schedule: str) -> None:
    assert schedule_of(terms) == schedule
    assert is_recurring(terms) == (schedule != "manual")


@pytest.mark.parametrize("text", ["at 2099-01-01T00:00:00Z", "every 5m", "manual", "@daily", "* * *", "61 * * * *"])
def test_patterns_are_patterns(text: str) -> None:
    with pytest.raises(IntervalRefused) as refused:
        schedule_of({"schedule_time": text})
    assert (refused.value.status, refused.value.faults[0].field) == (422, "schedule_time")


def test_an_interval_that_is_too_long() -> None:
    with pytest.raises(IntervalRefused) as refused:
        schedule_of({"interval_minutes": 40_000, "interval_type": "days"})
    assert refused.value.faults[0].field == "interval_minutes"


def test_policies() -> None:
    policy = parse_policy(policy_of({"interval_minutes": 5}))
    assert (policy.retries, policy.pause_after_failures, policy.jitter) == (3, 1, "off")
    assert (policy.history, policy.history_runs) == ("30d", 100)
    assert [backoff_us(policy, attempt) // S for attempt in range(1, 9)] == [
        60, 120, 240, 480, 960, 1_920, 3_600, 3_600
    ]  # fmt: skip
    once = parse_policy(policy_of({"max_retries": 0}))
    assert (once.retries, once.backoff, once.jitter) == (0, "", "")
    slow = parse_policy(policy_of({"retry_backoff_seconds": 86_400}))
    assert backoff_us(slow, 1) == 3_600 * S
    assert backoff_us(parse_policy(policy_of({"retry_backoff_seconds": 0})), 1) == 1_000


@pytest.mark.parametrize(
    ("request_type", "terms", "payload"),
    [
        ("dict[str, Any]", {"url": "u", "source_id": "s"}, '{"source_id":"s","url":"u"}'),
        ("dict", {"url": "u", "payload": {"b": 1, "a": [2]}}, '{"b":1,"a":[2],"url":"u"}'),
        ("Any", {"url": "u"}, '{"url":"u"}'),
        ("Site", {"url": "u", "source_name": "not taken"}, '{"url":"u"}'),
        ("Site | None", {"url": "u", "payload": {"depth": 3}}, '{"depth":3,"url":"u"}'),
        ("SomethingOfTheAuthors", {"url": "u"}, '{"url":"u"}'),
        ("Unit", {"source_id": "s"}, ""),
        ("list[int]", {"source_id": "s", "payload": [1, 2]}, "[1,2]"),
        ("str | None", {}, ""),
    ],
)
def test_payloads(request_type: str, terms: dict[str, Any], payload: str) -> None:
    assert payload_of(terms, MODULE, Verb("fetch", request=request_type)) == payload


@pytest.mark.parametrize(
    ("request_type", "terms"),
    [
        ("Site", {}),
        ("Site", {"url": "u", "payload": {"deep": 1}}),
        ("Site", {"url": "u", "payload": {"depth": "x"}}),
        ("Site", {"url": "u", "payload": [1]}),
        ("Unit", {"payload": {}}),
        ("dict[str, int]", {"url": "u"}),
        ("dict", {"payload": {"x": "y" * 65_000}, "url": "u" * 1_000}),
    ],
)
def test_payloads_that_the_verb_does_not_take(request_type: str, terms: dict[str, Any]) -> None:
    with pytest.raises(IntervalRefused) as refused:
        payload_of(terms, MODULE, Verb("fetch", request=request_type))
    assert (refused.value.status, refused.value.faults[0].field) == (422, "payload")


def test_what_is_not_given_stays_and_null_takes_away() -> None:
    kept = merged({}, read_given(b'{"url": "u", "source_id": "s", "interval_minutes": 5}'), CRAWLER)
    assert merged(kept, read_given(b'{"interval_minutes": null, "source_name": "n"}'), CRAWLER) == {
        "url": "u", "source_id": "s", "source_name": "n"
    }  # fmt: skip
    assert of_kept(kept_terms(kept)) == kept
    assert kept_terms(kept).source_id == "s"


def test_metadata_is_kept_to_the_letter() -> None:
    raw = b'{"url": "u", "metadata": {"z": 1.0, "a": "\\u00e9\\ud83d\\ude00", "n": null, "big": 12345678901234567890}}'
    kept = of_kept(kept_terms(merged({}, read_given(raw), CRAWLER)))
    assert list(kept["metadata"].items()) == [("z", 1.0), ("a", "é😀"), ("n", None), ("big", 12345678901234567890)]


def test_empty_texts_that_would_say_something_say_nothing() -> None:
    given = read_given(b'{"url": "u", "schedule_time": "", "interval_type": "", "verb": "", "source_id": ""}')
    assert merged({}, given, CRAWLER) == {"url": "u", "source_id": ""}


def test_half_of_a_surrogate_pair_is_refused() -> None:
    for raw in (
        b'{"url": "\\ud800"}',
        b'{"url": "u", "metadata": {"\\ud800": 1}}',
        b'{"url": "u", "payload": "\\udc00"}',
    ):
        with pytest.raises(IntervalRefused) as refused:
            merged({}, read_given(raw), CRAWLER)
        assert refused.value.status == 422


def test_a_name_that_is_given_twice_is_refused() -> None:
    for raw in (b'{"url": "a", "url": "b"}', b'{"url": "a", "payload": {"b": 1, "b": 2}}'):
        with pytest.raises(IntervalRefused, match="is given twice in one object") as refused:
            read_given(raw)
        assert refused.value.status == 400


def test_too_deep_is_refused() -> None:
    deep = b'{"url": "u", "metadata": {"a": ' + b"[" * 200 + b"]" * 200 + b"}}"
    with pytest.raises(IntervalRefused):
        merged({}, read_given(deep), CRAWLER)


def test_verbs() -> None:
    assert verb_of({}, CRAWLER) == VerbName("crawling", "crawler", "fetch")
    assert verb_of({"verb": "other.one"}, CRAWLER) == VerbName("crawling", "other", "one")
    assert str(verb_of({"verb": "crawling/other.one"}, CRAWLER)) == "crawling/other.one"
    for wrong in ("other/a.b", "a", "a.", ".b", "a.b.c", "a/b/c.d", "a.b:c"):
        with pytest.raises(ValueError, match=r"write MODULE\.VERB|another namespace"):
            verb_of({"verb": wrong}, CRAWLER)
    with pytest.raises(ValueError, match="--interval-jobs-verb"):
        verb_of({}, IntervalSettings())
