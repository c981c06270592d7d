"""Etags: a fingerprint of a thing's definition when it was read. A change that shows one fails if the thing is newer.

docs/decisions/0079: an etag covers what people define, and not what happens.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Final

from cronring.controller.api.token_box import TokenBox
from cronring.controller.errors import NotAsSeen
from cronring.controller.ports.defaults import DefaultsRow
from cronring.controller.ports.limits import LimitRow
from cronring.controller.ports.many import NewJob
from cronring.controller.ports.queues import QueueName, QueueSeen
from cronring.controller.ports.reads import JobRow
from cronring.controller.ports.store import ActiveVersion
from cronring.controller.ports.templates import TemplateRow
from cronring.controller.ports.webhooks import WebhookSeen
from cronring.controller.services.set_plans import JobStep
from cronring.schema.job import JobSpec

ANY: Final = "*"  # whatever it is, if it is there
_KIND: Final = "etag"
_BETWEEN: Final = ","


def job_etag(box: TokenBox, row: JobRow) -> str:
    """`row`: with its payload."""
    return _locked(box, row.job_id, row.deployment, *_sorted(row.spec))


def template_etag(box: TokenBox, row: TemplateRow) -> str:
    return _locked(box, row.template_id, row.revision)


def limit_etag(box: TokenBox, row: LimitRow) -> str:
    return _locked(box, row.namespace, row.module, row.label, row.max_concurrent, row.note, row.changed_at)


def defaults_etag(box: TokenBox, row: DefaultsRow) -> str:
    return _locked(box, row.revision)


def webhook_etag(box: TokenBox, seen: WebhookSeen) -> str:
    """Covers all that can change of a webhook."""
    return _locked(box, *seen)


def queue_etag(box: TokenBox, name: QueueName, seen: QueueSeen) -> str:
    """Covers a queue's settings, even if nobody has set any; not its messages, which are what happens to it."""
    return _locked(box, *name, *seen.settings, seen.changed_at)


def deployment_etag(box: TokenBox, key: str, active: ActiveVersion) -> str:
    """Covers which version is active, as people activate or end a version by that."""
    return _locked(box, key, *active)


def plan_etag(box: TokenBox, steps: Sequence[JobStep]) -> str:
    """Covers what a file would do: it changes with the existing jobs, with their set, and with the file."""
    parts = [(step.key, step.change, step.names, step.adopts, _defined(step.row), _wanted(step.job)) for step in steps]
    return _locked(box, *parts)


def check_etag(asked: str, current: str, what: str) -> None:
    """Raises NotAsSeen. `asked`: acceptable etags, separated by commas; "": any. `current`: "" if it doesn't exist."""
    if asked and not (current and (asked == ANY or current in asked.split(_BETWEEN))):
        raise NotAsSeen(
            f"{what} is not what your etag is of: it has been changed since; read it anew, and decide again"
        )


def _locked(box: TokenBox, *parts: object) -> str:
    """Locked, and not a plain hash: a payload is a part, and nobody may test guesses of one against it."""
    return box.lock(_KIND, hashlib.sha256(json.dumps(parts).encode()).digest()[:16])


def _defined(row: JobRow | None) -> tuple[object, ...] | None:
    return None if row is None else (row.job_id, row.deployment, row.set_name, *_sorted(row.spec))


def _wanted(job: NewJob | None) -> tuple[object, ...] | None:
    return None if job is None else _sorted(job.spec)


def _sorted(spec: JobSpec) -> tuple[object, ...]:
    return tuple(spec._replace(labels=sorted(spec.labels.items())))  # type: ignore[arg-type]  # only hashed
