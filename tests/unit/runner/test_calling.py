"""What a verb asks, as a message for controllers; and whatever else an author's process may say in its place."""

import json
from typing import Any

import pytest

from cronring.jobs import Jobs, ToldAnswer
from cronring.protos.caps import faults
from cronring.protos.cronring.v1 import jobs_pb2
from cronring.protos.runner.v1 import runner_pb2
from cronring.runner.calling import UnfitCallError, answer_of, unfit_answer, verb_call
from cronring.runner.lines import Asked, GarbageError, read_line


class Asking:
    """cronring.jobs.JobsAsker: what goes to the runner, as it comes out of the line there."""

    def __init__(self) -> None:
        self.call: runner_pb2.VerbCall | None = None

    def ask(
        self,
        execution_id: int,
        method: str,
        request: dict[str, Any],
        within_ms: int,
        convert: Any,  # noqa: ARG002
    ) -> Any:
        said = read_line(json.dumps({"call": [execution_id, 1, method, request, within_ms]}).encode())
        assert isinstance(said, Asked)
        self.call = verb_call(said)
        assert not faults(self.call)


def sent(method: str, *arguments: Any, **named: Any) -> Any:
    asking = Asking()
    getattr(Jobs(asking, 7), method)(*arguments, **named)
    assert asking.call is not None
    assert (asking.call.execution_id, asking.call.number) == (7, 1)
    return getattr(asking.call, asking.call.WhichOneof("request") or "")


def asked(method: str, **request: Any) -> Asked:
    return Asked(7, 1, method, request, 1_000)


def test_what_is_created_is_as_it_was_written() -> None:
    request = sent(
        "create", "team/billing.invoice", "c7", every="30m", anchor="2026-01-01T00:00:00Z", payload={"id": 7},
        labels={"a": "b"}, template="t", run_now=True, note="why", timeout="5m", on_disconnect="finish", retries=2,
        retry_on=[ConnectionError, "lost"], window=["Mon 08:00-18:00", "Tue 08:00-18:00"], jitter=0.1,
    )  # fmt: skip
    assert (request.namespace, request.module, request.verb, request.name) == ("team", "billing", "invoice", "c7")
    assert (request.template, request.run_now, request.note) == ("t", True, "why")
    spec = request.spec
    assert (spec.schedule, spec.payload, dict(spec.labels)) == ("every 30m", '{"id":7}', {"a": "b"})
    assert (spec.timeout_ms, spec.on_disconnect, spec.anchor.seconds) == (300_000, "finish", 1_767_225_600)
    assert (spec.policy.retries, list(spec.policy.retry_on), spec.policy.jitter) == (
        2,
        ["ConnectionError", "lost"],
        "10%",
    )


@pytest.mark.parametrize(
    ("given", "schedule"),
    [
        ({"cron": "0 6 1 * *"}, "0 6 1 * *"),
        ({"every": "30m"}, "every 30m"),
        ({"at": "2026-03-01 09:00"}, "at 2026-03-01 09:00"),
        ({}, "manual"),
        ({"template": "t"}, ""),
        ({"after": "billing.close"}, "manual"),
    ],
)
def test_schedules(given: dict[str, Any], schedule: str) -> None:
    assert sent("create", "billing.invoice", "c7", **given).spec.schedule == schedule


def test_an_update_names_what_is_given_and_unsets_what_is_none() -> None:
    request = sent(
        "update", "billing.invoice:c7", cron="0 7 * * *", labels={"team": "x", "old": None}, timeout=None, retries=3,
        jitter=None, payload=None,
    )  # fmt: skip
    assert request.key == "billing.invoice:c7"
    assert sorted(request.update_mask.paths) == [
        "labels.old", "labels.team", "payload", "policy.jitter", "policy.retries", "schedule", "timeout_ms",
    ]  # fmt: skip
    assert dict(request.spec.labels) == {"team": "x"}
    assert (request.spec.policy.retries, request.spec.HasField("timeout_ms")) == (3, False)


def test_a_run_has_the_job_s_payload_unless_it_is_given_another() -> None:
    assert not sent("run", "m.v:x").HasField("payload")
    assert sent("run", "m.v:x", payload=None).payload == "null"
    assert sent("run", "m.v:x", payload=[1]).payload == "[1]"


@pytest.mark.parametrize("method", ["delete", "pause", "resume"])
def test_orders_have_a_note(method: str) -> None:
    request = sent(method, "m.v:x", note="gone")
    assert (request.key, request.note) == ("m.v:x", "gone")


@pytest.mark.parametrize(
    ("method", "arguments", "named", "error", "words"),
    [
        ("create", ("invoice", "c"), {}, ValueError, 'write verb="billing.invoice"'),
        ("create", ("billing.invoice", ""), {}, ValueError, "its name is empty"),
        ("create", ("billing.invoice", "c"), {"cron": "* * * * *", "every": "1h"}, ValueError, "exclude each other"),
        ("create", ("billing.invoice", "c"), {"retires": 2}, TypeError, "did you mean retries?"),
        ("create", ("billing.invoice", "c"), {"labels": {"a": 1}}, TypeError, "labels as texts"),
        ("create", ("billing.invoice", "c"), {"payload": {1, 2}}, TypeError, "a value that JSON has"),
        ("update", ("",), {}, ValueError, "its key is empty"),
        ("update", ("m.v:x",), {}, ValueError, "nothing is given to change"),
        ("update", (7,), {}, TypeError, "takes its key as text"),
        ("run", ("m.v:x",), {"within": 0}, ValueError, "above 0, and an hour at most"),
        ("run", ("m.v:x",), {"within": float("nan")}, ValueError, "no time to wait"),
        ("run", ("m.v:x",), {"within": "30s"}, TypeError, "seconds or a timedelta"),
        ("run", ("m.v:x",), {"payload": "x" * 300_000}, ValueError, "at most 262144 are passed on"),
        ("run", ("m.v:x",), {"note": 7}, TypeError, "note as text"),
    ],
)
def test_what_can_t_be_sent_is_told_in_the_verb(
    method: str, arguments: Any, named: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words.replace("(", r"\(").replace("?", r"\?")):
        sent(method, *arguments, **named)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (asked("drop", key="m.v"), "has no method 'drop'"),
        (asked("get"), "KeyError: 'key'"),
        (asked("get", key=7), "TypeError"),
        (asked("get", key="\ud800"), "Unicode"),
        (asked("get", key="x" * 500), "key has 500 characters"),
        (asked("create", verb=7, name="x"), "AttributeError"),
        (asked("create", verb="m.v", name="x", labels=[1]), "AttributeError"),
        (asked("create", verb="m.v", name="x", labels={"a": {}}), "TypeError"),
        (asked("create", verb="m.v", name="x", options=[1]), "AttributeError"),
        (asked("create", verb="m.v", name="x", options={"timezone": 7}), "timezone"),
        (asked("create", verb="m.v", name="x", options={"timeout": 7}), "none of this SDK's"),
        (asked("create", verb="m.v", name="x", options={"timeout": "soon"}), "timeout: "),
        (asked("create", verb="m.v", name="x", options={"nothing": 7}), "nothing"),
        (asked("create", verb="m.v", name="x", options={"overlap": "sometimes"}), "overlap: "),
        (asked("create", verb="m.v", name="x", anchor="yesterday"), "anchor: "),
        (asked("create", verb="m.v", name="x", anchor=7), "none of this SDK's"),
        (asked("trigger", key="m.v", payload="x" * 200_000), "payload has 200002 characters"),
        (asked("pause", key="m.v", note="x" * 2_000), "note has 2000 characters"),
    ],
)
def test_whatever_a_child_says_the_stream_stays_whole(call: Asked, words: str) -> None:
    """What a controller would take for no runner's of ours is refused before it is sent."""
    with pytest.raises(UnfitCallError, match=words):
        verb_call(call)
    assert unfit_answer(UnfitCallError("so")).reason == "INVALID"


@pytest.mark.parametrize(
    "line",
    [
        [1, 1, "get", {}],
        [1, 0, "get", {}, 1],
        [1, 1, "get", [], 1],
        [1, 1, 7, {}, 1],
        [True, 1, "get", {}, 1],
        [1, 1, "get", {}, 3_600_001],
        [1 << 70, 1, "get", {}, 1],
        {"execution": 1},
    ],
)
def test_lines_that_are_no_calls(line: Any) -> None:
    with pytest.raises(GarbageError):
        read_line(json.dumps({"call": line}).encode())


def test_answers_reach_the_verb_as_results_and_exceptions() -> None:
    job = jobs_pb2.Job(key="m.v:x", schedule="every 1h", status="paused", paused=jobs_pb2.Pause(), payload="[1]")
    told = answer_of(runner_pb2.VerbAnswer(job=job))
    assert json.loads(told.value)["paused"] is True
    assert answer_of(runner_pb2.VerbAnswer(key="m.v:x")).value == '"m.v:x"'
    refusal = runner_pb2.VerbRefusal(reason="CONFLICT", problem="so it is", again=False)
    value, reason, problem, again = answer_of(runner_pb2.VerbAnswer(refusal=refusal))
    assert (value, reason, problem, again) == ("", "CONFLICT", "so it is", False)
    with pytest.raises(Exception, match="so it is") as raised:
        ToldAnswer(value, reason, problem).result()
    assert type(raised.value).__name__ == "JobRefused"
