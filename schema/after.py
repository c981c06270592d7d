"""`after="billing.close_month"`: the one job that another one follows, by its key."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from cronring.schema.fields import shown
from cronring.schema.keys import DEFAULT_NAMESPACE, qualified
from cronring.schema.policy_model import PolicyError

# As cronring.schema.validate and .names have them: a module and a verb, of a job made through the API its name, too.
# Or a queue, a workspace and a name, as .queues has them.
_KEY: Final = re.compile(
    r"(?:(?P<namespace>[A-Za-z0-9_][A-Za-z0-9_-]{0,99})/)?"
    r"(?P<job>[A-Za-z_][A-Za-z0-9_]{0,99}\.[A-Za-z_][A-Za-z0-9_]{0,99}(?::[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,98}[A-Za-z0-9_])?)?"
    r"|@[A-Za-z0-9_-]{1,100}\.[A-Za-z0-9_.-]{1,100}:[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,98}[A-Za-z0-9_])?)"
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
    return qualified(match["namespace"] or DEFAULT_NAMESPACE, match["job"])


def cycle_of(key: str, after: Mapping[str, str]) -> list[str]:
    """The jobs that follow each other in a circle from `key` on, in that order; empty if `key` is in no circle.

    `after`: by the key of a follower, the key of the job that it follows.
    """
    chain = {key: None}
    at = after.get(key)
    while at is not None and at not in chain:
        chain[at] = None
        at = after.get(at)
    return list(chain) if at == key else []


def cycle_fault(cycle: Sequence[str]) -> str:
    """What is wrong with a circle of jobs, as a sentence without its end."""
    if len(cycle) == 1:
        return f"{cycle[0]} can't run after itself"
    following = ", which runs after ".join((*cycle[1:], cycle[0]))
    return f"{cycle[0]} runs after {following}: none of them would ever begin; give one of them a schedule"
