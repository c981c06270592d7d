"""Policies: canonical values, what is refused with which remedy, and contradictions."""

import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronring.schema.policy import (
    FIELDS,
    Policy,
    PolicyError,
    parse_policy,
    policy_faults,
    read_policy,
    unread_fields,
)

BERLIN = {"timezone": "Europe/Berlin"}


def test_the_registry_and_the_policy_have_the_same_fields():
    assert [field.name for field in FIELDS] == list(Policy.__dataclass_fields__)
    assert {field.name: field.default for field in FIELDS} == {
        name: getattr(Policy(), name) for name in Policy.__dataclass_fields__
    }
    kinds = {str: "text", int: "count", type(None): "count", tuple: "names"}
    assert all(field.kind == kinds[type(field.default)] for field in FIELDS)
    assert all(0 < len(field.help) < 100 and "\n" not in field.help for field in FIELDS)


@pytest.mark.parametrize(
    ("raw", "canonical"),
    [
        ({}, {}),
        ({"timezone": None, "retries": None, "retry_on": None}, {}),
        ({"timezone": "", "retries": 0, "retry_on": [], "jitter": ""}, {"retries": 0}),
        ({"timezone": "UTC"}, {}),
        (BERLIN, BERLIN),
        ({"overlap": "skip"}, {}),
        ({"overlap": "allow", "max_concurrent": "3"}, {"overlap": "allow", "max_concurrent": 3}),
        # these are not what is done where nothing is said
        ({"on_missed": "run_last"}, {"on_missed": "run_last"}),
        ({"dst_overlap": "first", "dst_gap": "run_after"}, {"dst_gap": "run_after", "dst_overlap": "first"}),
        ({"start_at": "2026-03-01"}, {"start_at": "2026-03-01T00:00:00Z"}),
        ({"start_at": "2026-03-01", **BERLIN}, {**BERLIN, "start_at": "2026-02-28T23:00:00Z"}),
        ({"start_at": "2026-03-01T08:00:00+01:00", **BERLIN}, {**BERLIN, "start_at": "2026-03-01T07:00:00Z"}),
        ({"end_at": "2026-03-29", **BERLIN}, {**BERLIN, "end_at": "2026-03-29T21:59:59Z"}),
        ({"window": "monday-fri 8:00-18:00"}, {"window": "Mon-Fri 08:00-18:00"}),
        ({"jitter": 0.1}, {"jitter": "10%"}),
        ({"jitter": "0.125"}, {"jitter": "12.5%"}),
        ({"jitter": 1.0}, {"jitter": "100%"}),
        ({"jitter": 0}, {"jitter": "off"}),
        ({"jitter": "Auto"}, {"jitter": "auto"}),
        ({"jitter": "+-10%"}, {"jitter": "±10%"}),
        ({"jitter": "+/- 90s"}, {"jitter": "±1m30s"}),
        ({"jitter": "90s"}, {"jitter": "1m30s"}),
        ({"jitter": "1h:10s 5m:3s"}, {"jitter": "5m:3s 1h:10s"}),
        ({"catch_up_window": "120m"}, {"catch_up_window": "2h"}),
        ({"late_after": "90s"}, {"late_after": "1m30s"}),
        ({"after": " billing.close_month "}, {"after": "billing.close_month"}),
        ({"after": "default/billing.close"}, {"after": "billing.close"}),
        ({"after": "team-a/billing.sync:eu.1"}, {"after": "team-a/billing.sync:eu.1"}),
        ({"memory_limit": "1024MiB"}, {"memory_limit": "1GiB"}),
        ({"history": "9600h", "history_runs": "5"}, {"history": "400d", "history_runs": 5}),
        ({"memory_limit": "1.5GiB", "cpu_limit": "90s"}, {"memory_limit": "1536MiB", "cpu_limit": "1m30s"}),
        ({"memory_limit": "512000000B"}, {"memory_limit": "512MB"}),
        ({"retries": 3.0, "backoff": "60s"}, {"retries": 3, "backoff": "1m"}),
        ({"retry_on": "ConnectionError, requests.Timeout lost lost"},
            {"retry_on": ["ConnectionError", "requests.Timeout", "lost"]}),
        ({"retry_on": ("_Odd9", "failed")}, {"retry_on": ["_Odd9", "failed"]}),
    ],
)  # fmt: skip
def test_canonical_values(raw: dict[str, Any], canonical: dict[str, Any]):
    policy = read_policy(raw)
    assert policy.raw() == canonical
    assert list(policy.raw()) == [field.name for field in FIELDS if field.name in canonical]
    assert read_policy(policy.raw()) == policy
    assert parse_policy(policy.text) == policy
    assert policy.text == ("" if not canonical else json.dumps(policy.raw(), separators=(",", ":"), ensure_ascii=False))


@pytest.mark.parametrize(
    ("raw", "field", "position", "suggestion"),
    [
        ({"overlaps": "skip"}, "overlaps", 0, "overlap"),
        ({"time-zone": "UTC"}, "time-zone", 0, "timezone"),
        ({"colour": 1}, "colour", 0, None),
        ({"timezone": "berlin"}, "timezone", 0, "Europe/Berlin"),
        ({"timezone": 3}, "timezone", 0, None),
        ({"dst_gap": "run"}, "dst_gap", 0, "run_after"),
        ({"dst_overlap": "twice"}, "dst_overlap", 0, "both"),
        ({"on_missed": "coalesce"}, "on_missed", 0, "run_last"),
        ({"on_missed": "Run Last"}, "on_missed", 0, "run_last"),
        ({"on_missed": "runlast"}, "on_missed", 0, "run_last"),
        ({"overlap": "forbid"}, "overlap", 0, "skip"),
        ({"overlap": "replace"}, "overlap", 0, "cancel_running"),
        ({"overlap": "xyz"}, "overlap", 0, None),
        ({"start_at": "2026-3-1 8:00"}, "start_at", 6, "2026-03-01T08:00:00"),
        ({"start_at": "2026-03-29T02:30", **BERLIN}, "start_at", 0, "2026-03-29T03:00:00"),
        ({"window": "Mon-Fry 08:00-18:00"}, "window", 4, "Mon-Fri 08:00-18:00"),
        ({"jitter": 30}, "jitter", 0, "30s"),
        ({"jitter": float("nan")}, "jitter", 0, None),
        ({"jitter": True}, "jitter", 0, None),
        ({"jitter": "150%"}, "jitter", 0, "100%"),
        ({"jitter": "5m:3x"}, "jitter", 4, None),
        ({"catch_up_window": "5s"}, "catch_up_window", 0, "10s"),
        ({"catch_up_window": 60}, "catch_up_window", 0, "60s"),
        ({"late_after": "999ms"}, "late_after", 0, "1s"),
        ({"after": "billing.a, billing.b"}, "after", 11, None),
        ({"after": "close_month"}, "after", 0, None),
        ({"after": "billing.close-month"}, "after", 0, None),
        ({"after": "billing.sync:-"}, "after", 0, None),
        ({"after": 3}, "after", 0, None),
        ({"late_after": 5}, "late_after", 0, "5s"),
        ({"memory_limit": "16MiB"}, "memory_limit", 0, "32MiB"),
        ({"memory_limit": "256m"}, "memory_limit", 3, "256MiB"),
        ({"memory_limit": "256 Mi"}, "memory_limit", 3, "256MiB"),
        ({"memory_limit": 256}, "memory_limit", 3, "256MiB"),
        ({"memory_limit": 268435456}, "memory_limit", 9, "256MiB"),
        ({"memory_limit": "1000TiB"}, "memory_limit", 0, "64TiB"),
        ({"memory_limit": "lots"}, "memory_limit", 0, None),
        ({"memory_limit": True}, "memory_limit", 0, None),
        ({"memory_limit": -1}, "memory_limit", 0, None),
        ({"cpu_limit": "50ms"}, "cpu_limit", 0, "100ms"),
        ({"cpu_limit": 30}, "cpu_limit", 0, "30s"),
        ({"history": 400}, "history", 0, "400s"),
        ({"history": "for ever"}, "history", 0, None),
        ({"history_runs": 2_000_000}, "history_runs", 0, "1000000"),
        ({"retry_on": ["outofmemory"]}, "retry_on", 0, "out_of_memory"),
        ({"backoff": "2h"}, "backoff", 0, "1h"),
        ({"backoff": "5 min"}, "backoff", 1, "5m"),
        ({"retries": 101}, "retries", 0, "100"),
        ({"retries": -1}, "retries", 0, "0"),
        ({"retries": "many"}, "retries", 0, None),
        ({"retries": True}, "retries", 0, None),
        ({"retries": 1.5}, "retries", 0, None),
        ({"retries": [1]}, "retries", 0, None),
        ({"retry_on": ["lost", "timedout"]}, "retry_on", 6, "timed_out"),
        ({"retry_on": ["cancelled"]}, "retry_on", 0, None),
        ({"retry_on": ["a b"]}, "retry_on", 0, None),
        ({"retry_on": [7]}, "retry_on", 0, None),
        ({"retry_on": 7}, "retry_on", 0, None),
        ({"retry_on": ["E"] * 51}, "retry_on", 0, None),
    ],
)
def test_refused(raw: dict[str, Any], field: str, position: int, suggestion: str | None):
    with pytest.raises(PolicyError) as caught:
        read_policy(raw)
    error = caught.value
    assert (error.field, error.position, error.suggestion) == (field, position, suggestion)
    assert error.message
    assert str(error).startswith(f"{field}: {error.message}")
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.field, copy.message, copy.position, copy.suggestion) == (field, error.message, position, suggestion)
    if suggestion is not None and field in Policy.__dataclass_fields__ and field != "retry_on":
        read_policy({**raw, field: suggestion})  # whatever is suggested is taken


@given(
    st.dictionaries(
        st.sampled_from([field.name for field in FIELDS]),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text() | st.integers()),
    )
)
def test_whatever_is_written_is_read_or_refused(raw: dict[str, Any]):
    policy, fault = Policy(), None
    try:
        policy = read_policy(raw)
    except PolicyError as error:
        fault = error
    assert fault is None or (fault.field in raw and fault.position >= 0)
    assert read_policy(policy.raw()) == policy


@pytest.mark.parametrize("text", ["{", "[]", "3", "[" * 100_000, "v2:retries=3"])
def test_texts_that_are_none(text: str):
    assert (parse_policy(text), unread_fields(text)) == (Policy(), ("policy",))


@pytest.mark.parametrize(
    ("text", "known", "unread"),
    [
        ('{"retries":3,"blackout":"Dec"}', Policy(retries=3), ("blackout",)),
        ('{"timezone":"Mars/Olympus","retries":3}', Policy(retries=3), ("timezone",)),
        ('{"overlap":"never","blackout":1}', Policy(), ("overlap", "blackout")),
        ('{"retries":3}', Policy(retries=3), ()),
        ("", Policy(), ()),
    ],
)
def test_a_stored_text_of_a_newer_release(text: str, known: Policy, unread: tuple[str, ...]):
    assert (parse_policy(text), unread_fields(text)) == (known, unread)


def test_texts_are_parsed_once():
    assert parse_policy('{"retries":3}') is parse_policy('{"retries":3}')
    assert parse_policy("") == Policy()


PATTERN = "0 9 * * 1-5"


@pytest.mark.parametrize(
    ("raw", "schedule", "fields"),
    [
        ({}, PATTERN, []),
        ({**BERLIN, "window": "Mon-Fri 08:00-18:00", "jitter": "10%", "on_missed": "run_all"}, PATTERN, []),
        ({"start_at": "2026-03-02", "end_at": "2026-03-01"}, "every 1h", ["end_at"]),
        ({"max_concurrent": 3}, PATTERN, ["max_concurrent"]),
        ({"max_concurrent": 3, "overlap": "allow"}, PATTERN, []),
        ({"overlap": "buffer_all", "on_missed": "run_last"}, PATTERN, ["on_missed"]),
        ({"overlap": "buffer_all", "on_missed": "skip"}, PATTERN, []),
        ({"overlap": "cancel_running", "on_missed": "run_all"}, PATTERN, ["on_missed"]),
        ({"on_missed": "skip", "catch_up_window": "1h"}, PATTERN, ["catch_up_window"]),
        ({"backoff": "5s", "retry_on": ["lost"]}, PATTERN, []),  # the cluster may have a default for retries
        ({"backoff": "5s", "retries": 0}, PATTERN, []),
        ({"backoff": "5s", "retry_on": ["lost"], "retries": 1}, PATTERN, []),
        # schedules without a tick, with one, and intervals
        ({"retries": 2, "overlap": "allow", **BERLIN}, "", []),
        ({"after": "billing.a", "retries": 2, "overlap": "allow"}, "manual", []),
        ({"after": "billing.a"}, PATTERN, ["after"]),
        ({"after": "billing.a"}, "every 1h", ["after"]),
        ({"after": "billing.a"}, "at 2026-03-01T08:00:00Z", ["after"]),
        ({"after": "billing.a"}, "", ["after"]),
        ({"after": "billing.a", "window": "Mon 08:00-18:00"}, "manual", ["window"]),
        ({"jitter": "30s", "start_at": "2026-03-01", "overlap": "buffer_one"}, "manual",
            ["start_at", "jitter", "overlap"]),
        ({"jitter": "30s", "on_missed": "skip"}, "at 2026-03-01T08:00:00Z", []),
        ({"jitter": "10%", "dst_gap": "skip"}, "at 2026-03-01T08:00:00Z", ["dst_gap", "jitter"]),
        ({"jitter": "5m:3s"}, "at 2026-03-01T08:00:00Z", ["jitter"]),
        ({"dst_gap": "skip", "dst_overlap": "both"}, "every 1h", ["dst_gap", "dst_overlap"]),
        ({"jitter": "±50%", **BERLIN}, "every 1h", []),
        ({"jitter": "±51%"}, "every 1h", ["jitter"]),
        ({"jitter": "±31m"}, "every 1h", ["jitter"]),
        ({"jitter": "100%"}, "every 1h", []),
        ({"jitter": "auto"}, "every 1h", []),
        ({"jitter": "auto"}, PATTERN, []),
        ({"jitter": "auto"}, "at 2026-03-01T08:00:00Z", ["jitter"]),
        ({"jitter": "±30s"}, "at 2026-03-01T08:00:00Z", ["jitter"]),
        ({"jitter": "±10%"}, PATTERN, ["jitter"]),
        ({"jitter": "±30s"}, PATTERN, ["jitter"]),
        ({"jitter": "100%"}, PATTERN, []),
        # no tick is left
        ({"window": "18:00-08:00"}, PATTERN, ["window"]),
        ({"window": "Sat-Sun 00:00-24:00"}, PATTERN, ["window"]),
        ({"window": "Sat-Sun 00:00-24:00", **BERLIN}, "30 23 * * 0,5", []),
        ({"window": "Mon-Fri 10:00-11:00 Europe/Berlin"}, PATTERN, []),  # 09:00 UTC is 10:00 there, in winter
        ({"window": "Mon 09:00-09:01"}, "0 9 29 2 *", []),
        ({"window": "08:00-18:00"}, "0 20 * * * 2020", []),  # years that are past are no matter of the window
        ({"window": "08:00-18:00"}, "every 1h", []),
        ({"window": "08:00-18:00"}, "at 2026-03-01T20:00:00Z", ["window"]),
        ({"end_at": "2026-02-01"}, "at 2026-03-01T20:00:00Z", ["end_at"]),
        ({"start_at": "2026-02-01", "end_at": "2026-03-01"}, "0 9 29 2 *", ["end_at"]),
        ({"start_at": "2028-02-01"}, "0 9 29 2 * 2024", ["start_at"]),
        ({**BERLIN, "dst_gap": "skip"}, "30 2 29 3 * 2026", ["dst_gap"]),
        (BERLIN, "30 2 29 3 * 2026", []),
        (BERLIN, "*/30 2 29 3 * 2026", ["timezone"]),  # a rhythm isn't caught up
    ],
)  # fmt: skip
def test_contradictions(raw: dict[str, Any], schedule: str, fields: list[str]):
    faults = policy_faults(read_policy(raw), schedule)
    assert [field for field, _ in faults] == fields
    assert all("; " in message for _, message in faults)  # what is wrong; what to do


@pytest.mark.parametrize("number", [10**400, -(10**400), 1e300, float("inf"), float("nan")])
def test_a_jitter_of_any_number_is_read_or_refused(number: float):
    with pytest.raises(PolicyError, match="has no unit"):
        read_policy({"jitter": number})
