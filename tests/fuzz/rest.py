"""Bodies and queries of REST: whatever comes, it is a message that the door would let in, or refused."""

import contextlib
from typing import Any, Final
from urllib.parse import parse_qsl

from cronring.controller.api.rest.answers import json_of
from cronring.controller.api.rest.bodies import read_body
from cronring.controller.api.rest.reading import JsonReading, nested
from cronring.protos.admission import RefusedMessage, admitted
from cronring.protos.cronring.v1.deployments_pb2 import CreateDeploymentRequest
from cronring.protos.cronring.v1.jobs_pb2 import ControlJobsRequest, CreateJobRequest, ListJobsRequest
from cronring.protos.cronring.v1.ledger_pb2 import AuditRequest

_BODIES: Final = (CreateJobRequest, ControlJobsRequest, CreateDeploymentRequest)
_QUERIES: Final = (ListJobsRequest, AuditRequest, CreateJobRequest)


def rest_body(data: bytes) -> None:
    with contextlib.suppress(RefusedMessage):
        values = read_body(data)
        for kind in _BODIES:
            _read(JsonReading(texts=False), kind, values)


def rest_query(data: bytes) -> None:
    pairs = parse_qsl(data.decode("utf-8", "surrogateescape"), keep_blank_values=True)
    for kind in _QUERIES:
        reading = JsonReading(texts=True)
        _read(reading, kind, nested(kind.DESCRIPTOR, pairs, reading.faults))


def _read(reading: JsonReading, kind: Any, values: dict[str, Any]) -> None:
    message = kind()
    reading.fill(message, values)
    if not reading.faults:
        with contextlib.suppress(RefusedMessage):
            json_of(admitted(kind, message.SerializeToString()))
