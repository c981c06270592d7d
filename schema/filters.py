"""What lists are asked for, in one line of text: `outcome:failed label:team=billing module:reports since:1h`.

The command line, programs and web pages read the same words here. Terms of one key that may be repeated add up: any of
the outcomes, all of the labels.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from cronring.schema.duration import DurationError, parse_duration
from cronring.schema.execution import Outcome
from cronring.schema.instant import InstantError, parse_instant
from cronring.schema.labels import LABELS_LIMIT, label_faults
from cronring.schema.nearest import nearest

TEXT_LIMIT: Final = 4_000
NAME_LIMIT: Final = 400
RUNNING: Final = "running"
UNSUCCESSFUL: Final = "unsuccessful"  # every way to end but `completed`
UNSUCCESSFUL_OUTCOMES: Final = tuple(outcome.value for outcome in Outcome if outcome is not Outcome.COMPLETED)
LAST_OUTCOMES: Final = (*(outcome.value for outcome in Outcome), UNSUCCESSFUL)
OUTCOMES: Final = (RUNNING, *LAST_OUTCOMES)
STATUSES: Final = ("pending", "scheduled", "running", "completed", "failed", "cancelled", "paused", "orphaned")
EXECUTION_SORTS: Final = ("newest", "slowest", "latest")
JOB_SORTS: Final = ("key", "next", "last", "failures")
_MS: Final = 1_000  # microseconds

Term = tuple[str, str]
"""A key, and its value."""


class FilterError(ValueError):
    """A text that is no filter: `message` names the term, and says what to write instead."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ExecutionQuery(NamedTuple):
    """Which executions. Empty: any. `since`, `until`: ticks at or after, at or before; microseconds since 1970."""

    job: str = ""
    namespace: str = ""
    module: str = ""
    verb: str = ""
    runner: str = ""
    labels: Mapping[str, str] = MappingProxyType({})
    outcomes: tuple[str, ...] = ()
    since: int | None = None
    until: int | None = None
    sort: str = ""


class JobQuery(NamedTuple):
    """Which jobs. Empty: any. `outcomes`: of the last run that has ended."""

    namespace: str = ""
    module: str = ""
    verb: str = ""
    labels: Mapping[str, str] = MappingProxyType({})
    statuses: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()
    sort: str = ""


EXECUTION_WORDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({
    "job": (), "namespace": (), "module": (), "verb": (), "runner": (), "label": (), "outcome": OUTCOMES, "since": (),
    "until": (), "sort": EXECUTION_SORTS,
})  # fmt: skip
"""What may stand before a colon, and the words that may follow it (none: any text)."""
JOB_WORDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({
    "namespace": (), "module": (), "verb": (), "label": (), "status": STATUSES, "outcome": LAST_OUTCOMES,
    "sort": JOB_SORTS,
})  # fmt: skip
_INSTANTS: Final = ("since", "until")
_LISTS: Final = {"outcome": "outcomes", "status": "statuses"}


def parse_execution_query(text: str, now: int) -> ExecutionQuery:
    """Of one line. `now`: microseconds since 1970, for lengths of time like `since:1h`. Raises FilterError."""
    return read_execution_terms(split_terms(text), now)


def parse_job_query(text: str) -> JobQuery:
    """Of one line. Raises FilterError."""
    return read_job_terms(split_terms(text))


def read_execution_terms(terms: Iterable[Term], now: int) -> ExecutionQuery:
    """Raises FilterError."""
    query = ExecutionQuery(**_read(terms, EXECUTION_WORDS, now))
    if query.since is not None and query.until is not None and query.since > query.until:
        raise FilterError("since: is after until:, so nothing can match; exchange them")
    return query


def read_job_terms(terms: Iterable[Term]) -> JobQuery:
    """Raises FilterError."""
    return JobQuery(**_read(terms, JOB_WORDS, 0))


def expand_outcomes(outcomes: Iterable[str]) -> tuple[str, ...]:
    """Each once, in order, and UNSUCCESSFUL by what it stands for."""
    asked = set(outcomes)
    if UNSUCCESSFUL in asked:
        asked |= set(UNSUCCESSFUL_OUTCOMES)
    return tuple(each for each in OUTCOMES if each in asked and each != UNSUCCESSFUL)


def split_terms(text: str) -> list[Term]:
    """Terms stand apart by spaces. A value with spaces stands in double quotes, as in `runner:"a b"`.

    Raises FilterError.
    """
    if len(text) > TEXT_LIMIT:
        raise FilterError(f"the filter has {len(text):,} characters; at most {TEXT_LIMIT:,} are allowed")
    return [_term(each) for each in _words(text)]


def _words(text: str) -> list[str]:
    words: list[str] = []
    word, quoted, begun = "", False, False
    for character in text:
        if character == '"':
            quoted, begun = not quoted, True
        elif character.isspace() and not quoted:
            words += [word] if begun else []
            word, begun = "", False
        else:
            word, begun = word + character, True
    if quoted:
        raise FilterError('the filter has a " without its partner; write values with spaces like runner:"a b"')
    return [*words, word] if begun else words


def _term(word: str) -> Term:
    key, colon, value = word.partition(":")
    if not colon:
        raise FilterError(f"{_shown(word)} is no term; write KEY:VALUE, like outcome:failed or module:reports")
    if not value:
        raise FilterError(f"{_shown(word)} has nothing after its colon; leave the term out for any")
    return key, value


def _read(terms: Iterable[Term], words: Mapping[str, tuple[str, ...]], now: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    labels: dict[str, str] = {}
    lists: dict[str, list[str]] = {}
    for key, value in terms:
        if key not in words:
            close = nearest(key, words)
            hint = f"did you mean {close[0]}:?" if close else f"there are {', '.join(words)}"
            raise FilterError(f"{_shown(key)}: is not known here; {hint}")
        if key in _LISTS:
            lists.setdefault(_LISTS[key], []).extend(_one_of(key, each, words[key]) for each in value.split(","))
        elif key == "label":
            _add_label(labels, value)
        else:
            _set_once(found, key, _instant(key, value, now) if key in _INSTANTS else _one_of(key, value, words[key]))
    found |= {key: tuple(dict.fromkeys(values)) for key, values in lists.items()}
    return found | ({"labels": labels} if labels else {})


def _set_once(found: dict[str, Any], key: str, value: object) -> None:
    if found.setdefault(key, value) != value:
        raise FilterError(f"{key}: is given twice, and nothing can be both; leave one out")


def _one_of(key: str, value: str, allowed: tuple[str, ...]) -> str:
    if not allowed:
        if len(value) > NAME_LIMIT or not value.isprintable():
            raise FilterError(f"{key}: takes {NAME_LIMIT} printable characters at most")
        return value
    if value not in allowed:
        close = nearest(value, allowed)
        hint = f"did you mean {key}:{close[0]}? " if close else ""
        raise FilterError(f"{key}:{value[:60]} is not known; {hint}It is one of {', '.join(allowed)}")
    return value


def _add_label(labels: dict[str, str], value: str) -> None:
    key, equals, wanted = value.partition("=")
    if not equals:
        raise FilterError(f"label:{value[:60]} lacks its value; write label:KEY=VALUE, like label:team=billing")
    faults = label_faults({key: wanted})
    if faults:
        raise FilterError(f"label:{value[:60]}: {faults[0][1]}")
    if labels.setdefault(key, wanted) != wanted:
        raise FilterError(f"label:{key} is given with two values, and no job has both; leave one out")
    if len(labels) > LABELS_LIMIT:
        raise FilterError(f"the filter has more than {LABELS_LIMIT} labels")


def _instant(key: str, value: str, now: int) -> int:
    """`1h` and `-1h` are an hour ago; `now`; else an instant. A date alone is its first second, or with until its last.

    Raises FilterError.
    """
    if value == "now":
        return now
    try:
        return now - parse_duration(value.removeprefix("-")) * _MS
    except DurationError:
        pass
    try:
        return parse_instant(value, end_of_day=key == "until")
    except InstantError as error:
        raise FilterError(
            f"{key}:{value[:60]} is no instant; write {key}:1h for an hour ago, {key}:2026-03-29, or "
            f"{key}:2026-03-29T08:00Z ({error.message})"
        ) from None


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
