"""Filters of lists, in one line of text: `outcome:failed label:team=billing module:reports since:1h`.

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
CONTAINS_LIMIT: Final = 16
RUNNING: Final = "running"
UNSUCCESSFUL: Final = "unsuccessful"  # every way to end but `completed`
UNSUCCESSFUL_OUTCOMES: Final = tuple(outcome.value for outcome in Outcome if outcome is not Outcome.COMPLETED)
LAST_OUTCOMES: Final = (*(outcome.value for outcome in Outcome), UNSUCCESSFUL)
OUTCOMES: Final = (RUNNING, *LAST_OUTCOMES)
STATUSES: Final = ("pending", "scheduled", "running", "completed", "failed", "cancelled", "paused", "orphaned")
EXECUTION_SORTS: Final = ("newest", "slowest", "latest")
JOB_SORTS: Final = ("key", "next", "last", "lateness", "success", "failures")
_MS: Final = 1_000  # microseconds


class Term(NamedTuple):
    """A key, and its value. `at`: where the term begins in the text, from 0; None: it stood in none.

    `key` "": the word stands alone, and its key is found from the word.
    """

    key: str
    value: str
    at: int | None = None


class FilterError(ValueError):
    """A text that is no filter: `message` names the term, and says what to write instead.

    `at`: where that term begins, from 0; None: it is the text as a whole, or stood in none.
    """

    def __init__(self, message: str, at: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.at = at


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
    """Which jobs. Empty: any. `outcomes`: of the last run that has ended. `contains`: texts that are in the key."""

    namespace: str = ""
    module: str = ""
    verb: str = ""
    labels: Mapping[str, str] = MappingProxyType({})
    statuses: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()
    contains: tuple[str, ...] = ()
    sort: str = ""


EXECUTION_WORDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({
    "job": (), "namespace": (), "module": (), "verb": (), "runner": (), "label": (), "outcome": OUTCOMES, "since": (),
    "until": (), "sort": EXECUTION_SORTS,
})  # fmt: skip
"""What may stand before a colon, and the words that may follow it (none: any text)."""
JOB_WORDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({
    "contains": (), "namespace": (), "module": (), "verb": (), "label": (), "status": STATUSES,
    "outcome": LAST_OUTCOMES, "sort": JOB_SORTS,
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
    """Each outcome once, in order, with UNSUCCESSFUL replaced by the outcomes that it stands for."""
    asked = set(outcomes)
    if UNSUCCESSFUL in asked:
        asked |= set(UNSUCCESSFUL_OUTCOMES)
    return tuple(each for each in OUTCOMES if each in asked and each != UNSUCCESSFUL)


def contained(key: str, texts: Iterable[str]) -> bool:
    """Whether a job's key has all of them, in whatever case (docs/decisions/0112)."""
    lowered = lower(key)
    return all(lower(text) in lowered for text in texts)


def lower(text: str) -> str:
    """Only A to Z, as PostgreSQL does it for the collation "C"."""
    return text.encode().lower().decode()


def split_terms(text: str) -> list[Term]:
    """Terms stand apart by spaces. A value with spaces stands in double quotes, as in `runner:"a b"`.

    Raises FilterError.
    """
    if len(text) > TEXT_LIMIT:
        raise FilterError(f"the filter has {len(text):,} characters; at most {TEXT_LIMIT:,} are allowed")
    return [_term(word, at) for word, at in _words(text)]


def _words(text: str) -> list[tuple[str, int]]:
    """Each with where it begins. Raises FilterError for a quote without its partner."""
    words, last, quoted = _scanned(text)
    if quoted >= 0:
        raise FilterError('a " lacks its partner; write values with spaces like runner:"a b"', quoted)
    return words if last is None else [*words, last]


def _scanned(text: str) -> tuple[list[tuple[str, int]], tuple[str, int] | None, int]:
    """Complete words; the word at the end of the text, if any; and where an open quote begins (-1: there is none)."""
    words: list[tuple[str, int]] = []
    word, quoted, begins = "", -1, -1
    for at, character in enumerate(text):
        if begins < 0 and not character.isspace():
            begins = at
        if character == '"':
            quoted = at if quoted < 0 else -1
        elif character.isspace() and quoted < 0:
            words += [(word, begins)] if begins >= 0 else []
            word, begins = "", -1
        else:
            word += character
    return words, (word, begins) if begins >= 0 else None, quoted


class Unfinished(NamedTuple):
    """What is being typed at the end of a text: `begun` of a value of `key`, or ("") of a word. `at`: its beginning."""

    at: int
    key: str
    begun: str


def unfinished(text: str) -> Unfinished:
    """Raises FilterError for a text that is too long."""
    if len(text) > TEXT_LIMIT:
        raise FilterError(f"the filter has {len(text):,} characters; at most {TEXT_LIMIT:,} are allowed")
    word, at = _scanned(text)[1] or ("", len(text))
    key, colon, begun = word.partition(":")
    return Unfinished(at, key, begun) if colon else Unfinished(at, "", word)


def suggested(typed: Unfinished, words: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Terms that may replace what is being typed: keys with their colons, and fixed words."""
    if typed.key:
        return [term_of(typed.key, word) for word in words.get(typed.key, ()) if word.startswith(typed.begun)]
    alone = [word for key in _LISTS for word in words.get(key, ())]
    once = [word for word in dict.fromkeys(alone) if alone.count(word) == 1]
    return [word for word in (*(f"{key}:" for key in words), *once) if word.startswith(typed.begun)]


def term_of(key: str, value: str) -> str:
    """As it is written, so that it is read as one term."""
    return f'{key}:"{value}"' if any(map(str.isspace, value)) else f"{key}:{value}"


def _term(word: str, at: int) -> Term:
    key, colon, value = word.partition(":")
    if not colon:
        return Term("", word, at)
    if not key:
        raise FilterError(f"{_shown(word)} has nothing before its colon; write KEY:VALUE, like outcome:failed", at)
    if not value:
        raise FilterError(f"{_shown(word)} has nothing after its colon; leave the term out for any", at)
    return Term(key, value, at)


class _Found:
    """What terms have come to so far."""

    def __init__(self, words: Mapping[str, tuple[str, ...]], now: int) -> None:
        self._words = words
        self._now = now
        self.single: dict[str, Any] = {}
        self.labels: dict[str, str] = {}
        self.lists: dict[str, list[str]] = {}

    def take(self, key: str, value: str) -> None:
        """Raises FilterError."""
        if key not in self._words:
            key, value = _unknown(key, value, self._words) if key else (_meant(value, self._words), value)
        allowed = self._words[key]
        if key in _LISTS:
            self.lists.setdefault(_LISTS[key], []).extend(_one_of(key, each, allowed) for each in value.split(","))
        elif key == "label":
            _add_label(self.labels, value)
        elif key == "contains":
            self.lists.setdefault(key, []).append(_one_of(key, value, ()))
        else:
            one = _instant(key, value, self._now) if key in _INSTANTS else _one_of(key, value, allowed)
            _set_once(self.single, key, one)


def _read(terms: Iterable[Term], words: Mapping[str, tuple[str, ...]], now: int) -> dict[str, Any]:
    found = _Found(words, now)
    for term in terms:
        try:
            found.take(term.key, term.value)
        except FilterError as error:
            raise FilterError(error.message, term.at) from None
    lists = {key: tuple(dict.fromkeys(values)) for key, values in found.lists.items()}
    if len(lists.get("contains", ())) > CONTAINS_LIMIT:
        raise FilterError(f"the filter has more than {CONTAINS_LIMIT} texts that a key is to contain")
    return found.single | lists | ({"labels": found.labels} if found.labels else {})


def _unknown(key: str, value: str, words: Mapping[str, tuple[str, ...]]) -> tuple[str, str]:
    """The term for a word with an unknown key: with a dot or a slash before its colon, the word is a job's key.

    Raises FilterError for all other words.
    """
    if "contains" in words and ("." in key or "/" in key):
        return "contains", f"{key}:{value}"
    close = nearest(key, words)
    hint = f"did you mean {close}:?" if close else f"there are {', '.join(words)}"
    raise FilterError(f"{_shown(key)}: is not known here; {hint}")


def _meant(word: str, words: Mapping[str, tuple[str, ...]]) -> str:
    """The key of a word that stands alone, like `failed`. In a list of jobs, other words are parts of jobs' keys.

    Raises FilterError if several keys are possible, or none.
    """
    keys = [key for key in _LISTS if word in words.get(key, ())]
    if len(keys) == 1:
        return keys[0]
    if keys:
        raise FilterError(f"{word} may be {' or '.join(f'{key}:{word}' for key in keys)}; write which")
    if word and "contains" in words:
        return "contains"
    alone = [each for key in _LISTS for each in words.get(key, ())]
    close = nearest(word, alone)
    hint = f"did you mean {close}?" if close else "write KEY:VALUE, like outcome:failed or module:reports"
    raise FilterError(f"{_shown(word)} is no term; {hint}")


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
        hint = f"did you mean {key}:{close}? " if close else ""
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
