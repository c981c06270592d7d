"""What a thing was defined as when somebody read it: who shows that changes nothing that is newer.

docs/decisions/0079: it is of what people define, and not of what happens.
"""

import hashlib
import json
from typing import Final

from cronring.controller.api.token_box import TokenBox
from cronring.controller.errors import NotAsSeen
from cronring.controller.ports.limits import LimitRow
from cronring.controller.ports.reads import JobRow
from cronring.controller.ports.store import ActiveVersion
from cronring.controller.ports.templates import TemplateRow
from cronring.controller.ports.webhooks import WebhookSeen

ANY: Final = "*"  # whatever it is, if it is there
_KIND: Final = "etag"
_BETWEEN: Final = ","


def job_etag(box: TokenBox, row: JobRow) -> str:
    """`row`: with its payload."""
    spec = row.spec._replace(labels=sorted(row.spec.labels.items()))  # type: ignore[arg-type]  # only hashed
    return _locked(box, row.job_id, row.deployment, *spec)


def template_etag(box: TokenBox, row: TemplateRow) -> str:
    return _locked(box, row.template_id, row.revision)


def limit_etag(box: TokenBox, row: LimitRow) -> str:
    return _locked(box, row.namespace, row.module, row.label, row.max_concurrent, row.note, row.changed_at)


def webhook_etag(box: TokenBox, seen: WebhookSeen) -> str:
    """The rest of a webhook stays as it was made."""
    return _locked(box, *seen)


def deployment_etag(box: TokenBox, key: str, active: ActiveVersion) -> str:
    """Who activates a version, or ends it, decides by which one is active."""
    return _locked(box, key, *active)


def check_etag(asked: str, current: str, what: str) -> None:
    """Raises NotAsSeen. `asked`: the right ones, with commas between; "": any. `current`: "" if it isn't there."""
    if asked and not (current and (asked == ANY or current in asked.split(_BETWEEN))):
        raise NotAsSeen(
            f"{what} is not what your etag is of: it has been changed since; read it anew, and decide again"
        )


def _locked(box: TokenBox, *parts: object) -> str:
    """Nobody can try by it what they may not see: a payload is a part of it."""
    return box.lock(_KIND, hashlib.sha256(json.dumps(parts).encode()).digest()[:16])
