"""Names that operators give to jobs made through the API: what follows the colon of a job's key."""

import re
from typing import Final

NAME_LIMIT: Final = 100

_JOB_NAME: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?")


def job_name_fault(name: str) -> str | None:
    """What is wrong with a job's name; None if nothing."""
    if not name:
        return "is empty; it tells the job from others of its verb, like nightly"
    if len(name) > NAME_LIMIT:
        return f"has {len(name)} characters; at most {NAME_LIMIT} are allowed"
    if not _JOB_NAME.fullmatch(name):
        return f"{name!r} is no job's name: letters a to z, digits, _ - and . are allowed, and no - or . at its ends"
    return None
