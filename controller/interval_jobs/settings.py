"""What the façade is told: its namespace, and the verb that runs where a job names none."""

from typing import NamedTuple

from cronring.schema.keys import DEFAULT_NAMESPACE, VerbName
from cronring.schema.verb_name import read_verb


class IntervalSettings(NamedTuple):
    """`verb` None: each job has to name one."""

    namespace: str = DEFAULT_NAMESPACE
    verb: VerbName | None = None


def interval_settings(text: str) -> IntervalSettings:
    """Of --interval-jobs-verb, "" for none. Raises ValueError."""
    if not text:
        return IntervalSettings()
    verb = read_verb(text)
    return IntervalSettings(verb.namespace, verb)
