"""What the audit log keeps of a change: the fields that differ, bounded, and nothing that is secret.

A reader of the audit log may have no right to read payloads. So it keeps their digest and size only. Of a webhook's
URL, which may hold a secret, it keeps the origin only.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from cronring.controller.core.model import Activation
from cronring.controller.core.orders.orders import OrderColumns
from cronring.controller.core.orders.orphaning import key_details
from cronring.controller.ports.audit_log import Change
from cronring.controller.ports.defaults import DefaultsRow
from cronring.controller.ports.limits import LimitRow
from cronring.controller.ports.queues import QueueName
from cronring.controller.ports.store import ActiveVersion
from cronring.controller.ports.templates import TemplateValues, template_key
from cronring.controller.ports.tokens import RunnerGrant, TokenRow
from cronring.controller.ports.webhooks import NewWebhook
from cronring.controller.ports.workspaces import WorkspaceRow
from cronring.schema.identity import EVERYWHERE
from cronring.schema.instant import format_instant
from cronring.schema.job import JobSpec
from cronring.schema.keys import JobKey, namespace_of

FIELD_MAX: Final = 4_096  # characters of the JSON of one field
EXCERPT_BYTES: Final = 4_096
TEXT: Final = "text"  # of an excerpt
_SHORT: Final = 300  # characters; JSON writes each as twelve characters at most
_NUMBER: Final = 20  # digits
_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"))

Fields = Mapping[str, object]
Changes = Iterable[Change]
"""None, where nothing differs."""


class RunBeside(NamedTuple):
    """What the audit log tells of a run beside the schedule. `payload` "": the job's own."""

    activation_id: int
    trigger: str
    tick: int
    until_tick: int | None
    attempt: int
    payload: str


def of_job(key: str, before: Fields | None, after: Fields | None) -> Changes:
    return _changed(f"job {key}", namespace_of(key), before, after)


def of_execution(execution_id: int, job: str, after: Fields) -> Changes:
    """`job`: the key of its job, which is kept beside `after`."""
    return _changed(f"execution {execution_id}", namespace_of(job), None, {"job": job, **after})


def of_module(name: tuple[str, str], before: ActiveVersion, after: ActiveVersion, **jobs: tuple[str, ...]) -> Changes:
    """`name`: its namespace, and its own. `jobs`: the keys, sorted, of those that this has added, removed, ..."""
    key = str(JobKey(*name, "")).removesuffix(".")
    return _changed(f"module {key}", name[0], before._asdict(), after._asdict() | key_details(**jobs))


def of_template(namespace: str, name: str, before: TemplateValues | None, after: TemplateValues | None) -> Changes:
    return _changed(
        f"template {template_key(namespace, name)}", namespace,
        None if before is None else _template_fields(before), None if after is None else _template_fields(after),
    )  # fmt: skip


def of_limit(before: LimitRow | None, after: LimitRow | None) -> Changes:
    row = after or before
    assert row is not None, "there is one before, or there is one now"
    fields = [each and {"max_concurrent": each.max_concurrent, "note": each.note} for each in (before, after)]
    by_label = f" by label:{row.label}" if row.label else ""
    return _changed(f"limit {row.namespace}/{row.module}{by_label}", row.namespace, *fields)


def of_defaults(before: DefaultsRow, after: DefaultsRow) -> list[Change]:
    """Empty if no value has changed."""
    return _changed("defaults", "", *(_default_fields(each) for each in (before, after)))


def _default_fields(row: DefaultsRow) -> Fields:
    return {"timeout_ms": row.timeout_ms, "late_after_ms": row.late_after_ms, "retries": row.retries}


def of_workspace(found: WorkspaceRow) -> Changes:
    """A workspace is deleted: what it had. Each of its jobs has a change of its own."""
    counts = ("jobs", "running", "waiting", "messages")
    before = {name: getattr(found, name) for name in counts}
    return _changed(f"workspace {found.namespace}/{found.workspace}", found.namespace, before, None)


def of_queue(name: QueueName, before: Fields | None, after: Fields | None) -> Changes:
    return _changed(f"queue {name.namespace}/{name.queue}", name.namespace, before, after)


def of_token(row: TokenRow, *, revoked: bool) -> Changes:
    """A token that was made, or (`revoked`) that is not valid any more."""
    fields = {
        "grants": [f"{grant.role}@{grant.namespace}" for grant in row.grants], "expires_at": _instant(row.expires_at)
    }  # fmt: skip
    where = {grant.namespace for grant in row.grants}
    namespace = where.pop() if len(where) == 1 and EVERYWHERE not in where else ""
    return _changed(f"token {row.name}", namespace, fields if revoked else None, None if revoked else fields)


def of_session(session_id: int, fields: Fields, *, ended: bool) -> Changes:
    """A browser's session: a login, or (`ended`) its end."""
    return _changed(f"session {session_id}", "", fields if ended else None, None if ended else fields)


def of_runner_grant(row: RunnerGrant, *, revoked: bool) -> Changes:
    """As `of_token`."""
    fields = {
        "modules": row.modules, "may_activate": row.may_activate, "may_enroll": row.may_enroll,
        "uses_left": row.uses_left, "expires_at": _instant(row.expires_at),
    }  # fmt: skip
    return _changed(_grant(row), row.namespace, fields if revoked else None, None if revoked else fields)


def of_enrolling(row: RunnerGrant) -> Changes:
    """A runner has enrolled by this grant. `row`: the grant after that."""
    before = None if row.uses_left is None else {"uses_left": row.uses_left + 1}
    return _changed(_grant(row), row.namespace, before, {"enrolled": True, "uses_left": row.uses_left})


def of_webhook(name: str, before: Fields | None, after: Fields | None) -> Changes:
    return _changed(f"webhook {name}", "", before, after)


def webhook_fields(webhook: NewWebhook) -> dict[str, object]:
    return {
        "origin": webhook.origin, "events": webhook.events,
        "reasons": webhook.reasons, "outcomes": webhook.outcomes, "namespace": webhook.namespace,
        "module": webhook.module, "job": webhook.job, "labels": dict(webhook.labels),
    }  # fmt: skip


def of_controller(controller_id: str, after: Fields) -> Changes:
    return _changed(f"controller {controller_id}", "", None, after)


def spec_fields(spec: JobSpec, template: str = "") -> dict[str, object]:
    """The spec of a job, or of a template. `template`: the name of the one that the job was made from."""
    fields = spec._asdict() | {
        "timeout_ms": spec.said_timeout_ms,
        "anchor": _instant(spec.anchor), "policy": json.loads(spec.policy or "{}"), "labels": dict(spec.labels),
        "payload": digest(spec.payload),
    }  # fmt: skip
    return fields | ({"template": template} if template else {})


def order_fields(row: OrderColumns) -> dict[str, object]:
    """The columns that orders set in a job's row: texts and instants."""
    return {name: _instant(value) if isinstance(value, int) else value for name, value in row._asdict().items()}


def activation_fields(activation: Activation | RunBeside) -> dict[str, object]:
    """A run beside the schedule. Without a payload it has its job's."""
    fields = {
        "activation": activation.activation_id, "trigger": activation.trigger, "attempt": activation.attempt,
        "tick": _instant(activation.tick), "until_tick": _instant(activation.until_tick),
        "payload": digest(activation.payload),
    }  # fmt: skip
    return {name: value for name, value in fields.items() if value is not None}


def digest(text: str) -> dict[str, object] | None:
    """A digest in place of a text that is secret, or too long. None for an empty text."""
    raw = text.encode()
    return {"sha256": hashlib.sha256(raw).hexdigest(), "bytes": len(raw)} if raw else None


def excerpt(text: str) -> dict[str, object] | None:
    """A payload for those who may read it: its digest, and its first bytes. None for an empty text."""
    found = digest(text)
    return found and {**found, TEXT: text.encode()[:EXCERPT_BYTES].decode(errors="ignore")}


def without_excerpts(details: str) -> str:
    """The details of an action, for somebody who may not see payloads. `details`: JSON."""
    if f'"{TEXT}"' not in details:
        return details
    found = json.loads(details)
    for each in (found.get("payload") or {}).values():
        if each:
            each.pop(TEXT, None)
    return json.dumps(found)


def canonical(fields: Fields | None) -> str | None:
    """As it is kept: JSON in ASCII, names sorted, no spaces, each field bounded."""
    return None if fields is None else _json({name: _bounded(value) for name, value in fields.items()})


def _changed(subject: str, namespace: str, before: Fields | None, after: Fields | None) -> list[Change]:
    if before is not None and after is not None:
        before, after = _without(before, after), _without(after, before)
    return [Change(subject, namespace, before, after)] if before or after else []


def _without(fields: Fields, other: Fields) -> Fields:
    """The fields that differ from `other`."""
    return {name: value for name, value in fields.items() if name not in other or other[name] != value}


def _template_fields(values: TemplateValues) -> dict[str, object]:
    return {"description": values.description, **spec_fields(values.spec)}


def _grant(row: RunnerGrant) -> str:
    return f"runner-grant {row.name}"


def _instant(at: int | None) -> str | None:
    return None if at is None else format_instant(at)


def _bounded(value: object) -> object:
    if _size(value) <= _SHORT:
        return value
    text = _json(value)
    if len(text) <= FIELD_MAX:
        return value
    if isinstance(value, Sequence) and not isinstance(value, str):
        return _first(value)
    return digest(value if isinstance(value, str) else text)


def _size(value: object) -> int:
    """The number of its characters, or more. A value of an unknown kind counts as too large."""
    match value:
        case str():
            return len(value)
        case None | int():
            return _NUMBER
        case dict():  # nearly all are of few: labels, a policy, a digest
            return sum(len(name) + _size(each) + 1 for name, each in value.items())
        case _:
            return FIELD_MAX


def _first(values: Sequence[object]) -> list[object]:
    """As many values as fit, and then how many don't."""
    kept: list[object] = []
    room = FIELD_MAX
    for value in values:
        room -= len(_json(value)) + 1
        if room < 0:
            break
        kept.append(value)
    return [*kept, f"... and {len(values) - len(kept)} more"]


def _json(value: object) -> str:
    return _ENCODER.encode(value)
