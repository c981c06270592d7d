"""`after="billing.close_month"`: the one job that another one follows, by its key."""

import re
from typing import Final

from schema.fields import shown
from schema.keys import DEFAULT_NAMESPACE
from schema.policy_model import PolicyError

# As schema.validate and schema.names have them: a module and a verb, of a job made through the API its name, too.
_KEY: Final = re.compile(
    r"(?:(?P<namespace>[A-Za-z0-9_][A-Za-z0-9_-]{0,99})/)?"
    r"(?P<job>[A-Za-z_][A-Za-z0-9_]{0,99}\.[A-Za-z_][A-Za-z0-9_]{0,99}(?::[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,98}[A-Za-z0-9_])?)?)"
)
_SEPARATORS: Final = re.compile(r"[\s,;]+")


def canonical_after(text: str) -> str:
    """The key as jobs are listed under it. Raises PolicyError."""
    several = [part for part in _SEPARATORS.split(text) if part]
    if len(several) > 1:
        message = f"a job runs after exactly one other, and these are {len(several)}; let them follow each other"
        raise PolicyError("after", message, text.index(several[1]))
    match = _KEY.fullmatch(text)
    if match is None:
        raise PolicyError("after", f"{shown(text)} is no job's key, like billing.close_month or team-a/billing.sync:eu")
    namespace, job = match["namespace"], match["job"]
    return job if namespace in (None, DEFAULT_NAMESPACE) else f"{namespace}/{job}"
