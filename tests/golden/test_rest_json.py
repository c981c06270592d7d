"""What messages are as JSON, held by files that were read by people. `UPDATE_TRANSCRIPTS=1` rewrites them.

Of the kinds of fields that there are: int64 (a text), int32, double, instants, bytes, enums, maps, lists, masks, absent
ones.
"""

import json
import os
from pathlib import Path
from typing import Any, Final

import pytest
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from cronring.controller.api.rest.answers import values_of
from cronring.controller.api.rest.bodies import read_body
from cronring.controller.api.rest.openapi import FILE, text
from cronring.controller.api.rest.reading import JsonReading
from cronring.protos.cronring.v1.audit_log_pb2 import AuditLogRow
from cronring.protos.cronring.v1.executions_pb2 import Execution
from cronring.protos.cronring.v1.jobs_pb2 import (
    ControlJobsRequest,
    Job,
    JobEvent,
    Pause,
    SkippedTicks,
    UpdateJobRequest,
)
from cronring.protos.cronring.v1.schema_pb2 import Policy

FOLDER: Final = Path(__file__).parent / "rest"
AT: Final = Timestamp(seconds=1_772_352_000, nanos=123_456_000)
BEYOND: Final = 2**53 + 1  # which a double rounds
ANSWERS: Final[dict[str, Message]] = {
    "job": Job(
        key="billing/invoices.close:month",
        schedule="0 6 1 * *",
        next_tick=AT,
        last_lateness_ms=1.5,
        timeout_ms=BEYOND,
        slot=17,
        id=4711,
        skipped=[SkippedTicks(reason="paused", ticks=3)],
        policy=Policy(retries=2, retry_on=["OSError"], priority=0),
        labels={"team": "core", "täm": "é"},
        paused=Pause(at=AT, by="user:corp/ada"),
    ),
    "job_empty": Job(),
    "job_event": JobEvent(kind=JobEvent.KIND_REMOVED, job=Job(key="a.b"), resume_token="token"),
    "execution": Execution(id=BEYOND, job="a.b", tick=AT, cpu_ms=0.0, memory_peak_bytes=-1, output='"\n\x00'),
    "audit_log_row": AuditLogRow(id=1, hash=b"\x00\xff\xfe", before_json="{}", refused=""),
}
REQUESTS: Final[dict[str, tuple[str, type[Message]]]] = {
    "update_job": (
        '{"key": "a.b", "spec": {"timeout_ms": 9007199254740993, "labels": {"my_team": "x"}, "anchor":'
        ' "2026-03-01T09:00:00.5+01:00", "policy": {"retries": 0, "jitter": null}},'
        ' "update_mask": "timeout_ms,policy.retries,labels.my_team"}',
        UpdateJobRequest,
    ),
    "control_jobs": ('{"filter": {"labels": {}}, "action": "ACTION_PAUSE", "dry_run": true}', ControlJobsRequest),
}


def held(name: str, found: str) -> None:
    file = FOLDER / name
    if os.environ.get("UPDATE_TRANSCRIPTS"):
        file.write_text(found)
    assert file.read_text() == found, f"{file.name} says something else; if that is meant, UPDATE_TRANSCRIPTS=1"


@pytest.mark.parametrize("name", ANSWERS)
def test_messages_are_this_json(name: str) -> None:
    found: dict[str, Any] = values_of(ANSWERS[name])
    held(f"{name}.json", json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


@pytest.mark.parametrize("name", REQUESTS)
def test_json_is_this_message(name: str) -> None:
    raw, kind = REQUESTS[name]
    message, reading = kind(), JsonReading(texts=False)
    reading.fill(message, read_body(raw.encode()))
    assert reading.faults == []
    held(f"{name}.txt", str(message))


@pytest.mark.parametrize("name", ANSWERS)
def test_what_was_written_is_read_as_the_same(name: str) -> None:
    message, reading = type(ANSWERS[name])(), JsonReading(texts=False)
    reading.fill(message, json.loads(json.dumps(values_of(ANSWERS[name]))))
    assert (message, reading.faults) == (ANSWERS[name], [])


def test_the_document_of_openapi_is_fresh() -> None:
    assert FILE.read_text() == text(), "run `make protos` and commit"
