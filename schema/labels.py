"""Labels of a job: what an operator sorts jobs by. Keys as Kubernetes has them: `team`, `example.com/cost-centre`."""

import re
from collections.abc import Mapping
from typing import Final

LABELS_LIMIT: Final = 64
KEY_LIMIT: Final = 63  # of the name; the prefix before a slash may have PREFIX_LIMIT
PREFIX_LIMIT: Final = 253
VALUE_LIMIT: Final = 255

_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_PREFIX: Final = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")


def label_faults(labels: Mapping[str, str]) -> list[tuple[str, str]]:
    """What is wrong with labels, as (key, message); "" is the key of what concerns them all."""
    if len(labels) > LABELS_LIMIT:
        return [("", f"{len(labels)} labels; at most {LABELS_LIMIT} are allowed")]
    faults = []
    for key, value in labels.items():
        fault = _key_fault(key) or _value_fault(value)
        if fault is not None:
            faults.append((key, fault))
    return faults


def _key_fault(key: str) -> str | None:
    prefix, slash, name = key.rpartition("/")
    if len(name) > KEY_LIMIT or len(prefix) > PREFIX_LIMIT:
        return f"the key is too long: {KEY_LIMIT} characters at most, after a prefix of {PREFIX_LIMIT} at most"
    if not _NAME.fullmatch(name) or (slash and not _PREFIX.fullmatch(prefix)):
        return (
            f"{key!r} is no key: letters, digits, - _ and . are allowed, with a letter or digit at both ends, "
            "after a domain and a slash if you like: team, example.com/team"
        )
    return None


def _value_fault(value: str) -> str | None:
    if len(value) > VALUE_LIMIT:
        return f"the value has {len(value)} characters; at most {VALUE_LIMIT} are allowed"
    if not value.isprintable():
        return "the value must be printable text on one line"
    return None
