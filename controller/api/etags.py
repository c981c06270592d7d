"""What a job, or a template, was defined as when somebody read it: who shows that changes nothing that is newer.

docs/decisions/0079: it is of what people define, and not of what happens.
"""

import hashlib
import json
from typing import Final

from cronring.controller.api.seal import Seal
from cronring.controller.errors import NotAsSeen
from cronring.controller.ports.reads import JobRow
from cronring.controller.ports.templates import TemplateRow

ANY: Final = "*"  # whatever it is, if it is there
_KIND: Final = "etag"
_BETWEEN: Final = ","


def job_etag(seal: Seal, row: JobRow) -> str:
    """`row`: with its payload."""
    spec = row.spec._replace(labels=sorted(row.spec.labels.items()))  # type: ignore[arg-type]  # only hashed
    return _sealed(seal, row.job_id, row.deployment, *spec)


def template_etag(seal: Seal, row: TemplateRow) -> str:
    return _sealed(seal, row.template_id, row.revision)


def check_etag(asked: str, current: str, what: str) -> None:
    """Raises NotAsSeen. `asked`: the right ones, with commas between; "": any. `current`: "" if it isn't there."""
    if asked and not (current and (asked == ANY or current in asked.split(_BETWEEN))):
        raise NotAsSeen(
            f"{what} is not what your etag is of: it has been changed since; read it anew, and decide again"
        )


def _sealed(seal: Seal, *parts: object) -> str:
    """Nobody can try by it what they may not see: a payload is a part of it."""
    return seal.seal(_KIND, hashlib.sha256(json.dumps(parts).encode()).digest()[:16])
