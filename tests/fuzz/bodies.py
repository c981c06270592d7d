"""Targets: JSON that the product reads, and what stands around it."""

import base64
import hashlib
import hmac
import json
import zlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from cronring.child.payloads import PayloadError as ChildPayloadError
from cronring.child.payloads import Payloads
from cronring.context import Context, RunFacts
from cronring.controller.api.paging import Pages
from cronring.controller.api.payloads import canonical_payload
from cronring.controller.api.problems import InvalidRequest
from cronring.controller.store.changes import decode_position, encode_position
from cronring.protos.executions import METRICS_LENGTH_MAX, MalformedError, decode_reports
from cronring.protos.modules import policy_message, policy_of
from cronring.protos.runner.v1 import runner_pb2 as wire
from cronring.schema.module import DataField, DataType, Module
from cronring.schema.payload import NoPayload, payload_faults
from cronring.schema.policy import parse_policy, read_each, unread_fields
from cronring.webhooks import VerificationError, verify
from tests.fuzz.bounds import Misbehaved, as_text, as_wire_text, placed
from tests.support.boxes import BOX

_SECRET: Final = "whsec_" + base64.b64encode(b"k" * 32).decode()
_NOW_S: Final = 1_767_225_600.0
_PAGES: Final = Pages(BOX, "ListJobs", "a filter")


def _json(text: str) -> Any:
    """None for what is no JSON at all."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def policy(data: bytes) -> None:
    """Every wrong value is named, with its field and place; what is right is canonical, also over the wire."""
    raw = _json(as_text(data))
    if not isinstance(raw, dict):
        return
    reading = read_each(raw)
    for error in reading.errors:
        value = raw.get(error.field)
        placed(error, value if isinstance(value, str) else " " * 60_000)
    text = reading.policy.text
    if parse_policy(text) != reading.policy:
        raise Misbehaved(f"{text!r} is not canonical")
    message = policy_message(reading.policy)
    if message is not None and policy_of(type(message).FromString(message.SerializeToString())) != reading.policy:
        raise Misbehaved(f"{text!r} is another policy on the wire")


def policy_text(data: bytes) -> None:
    """As it stands in a row: what can be read of it is a policy, and the rest is named."""
    text = as_wire_text(data)
    known = parse_policy(text)
    if not unread_fields(text) and parse_policy(known.text) != known:
        raise Misbehaved(f"{text!r} is another policy once it is written anew")


@dataclass
class Item:
    sku: str
    count: int | None = None


@dataclass
class Order:
    """What the module below describes, as its author wrote it."""

    number: int
    at: datetime
    items: list[Item]
    kind: Literal["a", 1, True] = "a"
    share: float | None = None
    tags: dict[str, list[str]] | None = None


_MODULE: Final = Module(
    "shop",
    types=(
        DataType("Item", (DataField("sku", "str"), DataField("count", "int | None", True, "null"))),
        DataType(
            "Order",
            (
                DataField("number", "int"),
                DataField("at", "datetime.datetime"),
                DataField("items", "list[Item]"),
                DataField("kind", 'Literal["a", 1, true]', True, '"a"'),
                DataField("share", "float | None", True, "null"),
                DataField("tags", "dict[str, list[str]] | None", True, "null"),
            ),
        ),
    ),
    verbs=(),
)
_TAKEN: Final = Payloads(Order, globals())


def payload(data: bytes) -> None:
    """What is taken has a canonical text that is taken as well, and is what the author's process makes its value of."""
    text = as_text(data)
    faults = payload_faults(_MODULE, "Order", text)
    if any(not fault or len(fault) > 20_000 for fault in faults):
        raise Misbehaved("a fault that says nothing, or too much")
    try:
        canonical = canonical_payload(text)
    except NoPayload:
        if not faults:
            raise Misbehaved(f"{text!r} has no faults, and no canonical text") from None
        return
    if faults or not text:
        return
    if canonical_payload(canonical) != canonical or payload_faults(_MODULE, "Order", canonical):
        raise Misbehaved(f"{canonical!r} is not canonical")
    canonical.encode()
    try:
        _TAKEN.read(canonical)
    except ChildPayloadError as error:
        raise Misbehaved(f"{canonical!r} was taken, and the author's process refuses it: {error}") from error


def metrics(data: bytes) -> None:
    """Whatever stands there, the report is taken; what is kept is a small JSON object that PostgreSQL takes."""
    report = wire.Report(execution_id=1, outcome=wire.OUTCOME_COMPLETED, metrics_json=as_wire_text(data))
    (decoded,) = decode_reports(wire.Reports(reports=[report]))
    if decoded.metrics:
        kept = json.loads(decoded.metrics)
        if not isinstance(kept, dict) or len(decoded.metrics) > METRICS_LENGTH_MAX or "\x00" in decoded.metrics:
            raise Misbehaved(f"{decoded.metrics!r} was kept")


def context_report(data: bytes) -> None:
    """What a verb says of itself: kept, or refused with TypeError or ValueError."""
    said = _json(as_text(data))
    if not isinstance(said, dict):
        return
    reported: dict[int, dict[str, Any]] = {}
    moved: dict[int, int] = {}
    facts = RunFacts(1, "m.v", 0, 0, 1, 1, "schedule", 0, 0, 0, 0, "", "", None, True)
    context = Context(facts, moved, reported)
    try:
        context.report(**said)
        context.next_in(str(next(iter(said), "")))
    except (TypeError, ValueError):
        return
    finally:
        if reported and len(json.dumps(reported[1], separators=(",", ":"))) > METRICS_LENGTH_MAX:
            raise Misbehaved("more was kept than may be")


def webhook(data: bytes) -> None:
    """The receiver: an event, or VerificationError. The first byte says whether it is signed by who has the secret."""
    head, _, body = data.partition(b"\n\n")
    lines = as_text(head[1:]).split("\n")
    headers = dict(line.split(":", 1) for line in lines if ":" in line)
    if head[:1] < b"\x80":
        own_id, stamp = headers.get("webhook-id", "m"), headers.get("webhook-timestamp", str(int(_NOW_S)))
        signed = f"{own_id}.{stamp}.".encode("utf-8", "surrogatepass") + body
        made = hmac.new(b"k" * 32, signed, hashlib.sha256).digest()
        headers |= {"webhook-id": own_id, "webhook-timestamp": stamp}
        headers["Webhook-Signature"] = f"v1,{base64.b64encode(made).decode()} v2,x"
    for given in (body, as_text(body)):
        try:
            event = verify(_SECRET, headers, given, now_s=_NOW_S)
        except VerificationError:
            continue
        if not isinstance(event, dict):
            raise Misbehaved(f"{event!r} is no event")


def page_token(data: bytes) -> None:
    """Given out here, or refused: what has the right lock, too, if it is one of another kind."""
    for token in (as_wire_text(data), BOX.lock("watch jobs", data)):
        for read in (_PAGES.text_cursor, _PAGES.number_cursor):
            try:
                cursor = read(token)
            except InvalidRequest:
                continue
            if token:
                raise Misbehaved(f"{token!r} was read as {cursor!r}")


def watch_token(data: bytes) -> None:
    """A position that can be packed again, or ValueError. The bytes are what is packed, and what is packed in them."""
    for packed in (data, zlib.compress(data, 1)):
        try:
            position = decode_position(packed)
        except ValueError:
            continue
        if decode_position(encode_position(position)) != position:
            raise Misbehaved(f"{packed!r} is another position when it is encoded")
        if abs(position.database_now) >= 2**63:
            raise Misbehaved(f"{packed!r} is no instant: {position.database_now}")


def reports(data: bytes) -> None:
    """Reports as they come in: decoded within their limits, or MalformedError."""
    try:
        said = wire.Reports.FromString(data)
        decoded = decode_reports(said)
    except MalformedError:
        return
    except Exception as error:
        if type(error).__name__ == "DecodeError":
            return
        raise
    for report in decoded:
        if not report.claimed_at <= report.started_at <= report.ended_at:
            raise Misbehaved(f"{report} is out of order")
        kept = (report.error_type, report.error_message, report.output, report.stack, report.metrics)
        if any("\x00" in text for text in (*kept, *report.error_bases)):
            raise Misbehaved(f"{report} has a NUL")
