"""A job's policies: what there is to set (FIELDS), and how it is read. One registry drives the annotation, the text
form, protobuf, the API, the CLI and the docs.

    read_policy({"timezone": "Europe/Berlin", "jitter": 0.1, "retries": 3}).text
    # '{"timezone":"Europe/Berlin","jitter":"10%","retries":3}'
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from cronring.schema.policy_faults import policy_faults
from cronring.schema.policy_model import FIELDS, Policy, PolicyError, PolicyField, RawValue
from cronring.schema.policy_read import Reading, read_each

__all__ = [
    "FIELDS",
    "Policy",
    "PolicyError",
    "PolicyField",
    "RawValue",
    "Reading",
    "newer",
    "parse_policy",
    "policy_faults",
    "read_each",
    "read_policy",
    "unread_fields",
]

# Jobs share their policies: a controller meets few texts, many times over.
_TEXTS_CACHED: Final = 4_096


def read_policy(raw: Mapping[str, object]) -> Policy:
    """The policy that somebody wrote, as JSON values by the fields' names, in canonical form. None is "not given".

    Raises PolicyError for an unknown name, and for a value that is none of its field's: the first. `read_each` has all.
    """
    policy, errors = read_each(raw)
    if errors:
        raise errors[0]
    return policy


@lru_cache(maxsize=_TEXTS_CACHED)
def parse_policy(text: str) -> Policy:
    """The policy of a stored text (`Policy.text`). Raises nothing.

    It may be of a newer release: fields that this one doesn't read are left out, and `unread_fields` names them.
    Whoever decides about ticks asks for those first.
    """
    return _stored(text).policy


# docs/decisions/0086: an older release leaves such a job alone
@lru_cache(maxsize=_TEXTS_CACHED)
def unread_fields(text: str) -> tuple[str, ...]:
    """Fields of a stored policy that a newer release wrote, or one with newer time zones.

    Of a text that is no policy at all: "policy".
    """
    return tuple(error.field for error in _stored(text).errors)


def newer(text: str) -> str:
    """What to say to who would change a job, or decide about its ticks, but doesn't read all of its policy."""
    return (
        f"its policy says {', '.join(unread_fields(text))}, which this release doesn't read: ask a controller of a "
        "newer release, or set the whole policy anew"
    )


def _stored(text: str) -> Reading:
    if not text:
        return Reading(Policy(), ())
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        raw = None
    if not isinstance(raw, dict):
        return Reading(Policy(), (PolicyError("policy", f"not the text of a policy: {text[:80]!r}"),))
    return read_each(raw)
