"""What stands below a verb in the text form: `+cron "0 6 1 * *"`, `+retries 3`, `+async`."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from cronring.schema.duration import parse_duration
from cronring.schema.instant import InstantError, format_instant, parse_instant
from cronring.schema.module import DEFAULT_POLICY, Verb
from cronring.schema.nearest import nearest
from cronring.schema.policy import FIELDS, Reading, policy_faults, read_each
from cronring.schema.schedule import check_interval, check_schedule, is_interval
from cronring.schema.text_cursor import Cursor, Quoted
from cronring.schema.text_lex import SchemaError
from cronring.schema.validate import ON_DISCONNECT

_SCHEDULES: Final = ("+cron", "+every", "+once", "+manual")
_INSTANTS: Final = ("+once", "+anchor")
_POLICIES: Final = tuple(f"+{field.name}" for field in FIELDS)
_FAULTS_SHOWN: Final = 100
_COUNTS: Final = frozenset(field.name for field in FIELDS if field.kind == "count")
_ALL: Final = (*_SCHEDULES, "+anchor", *_POLICIES, "+timeout", "+on_disconnect", "+payload", "+async")
_VERB_FIELDS: Final = {"+timeout": "timeout_ms", "+async": "is_async"} | dict.fromkeys(_SCHEDULES, "schedule")


class Metadata:
    """Of one verb. Policies contradict each other, and instants need the zone, so both are judged at the end."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._seen: dict[str, str] = {}  # words by what they set
        self._values: dict[str, Any] = {}  # of fields of Verb
        self._raw: dict[str, str | int] = {}  # policies as written
        self._instants: dict[str, Quoted] = {}
        self.at: dict[str, int] = {}  # the token of each value, by what it sets

    def read(self, verb: Verb) -> Verb:
        """The verb with its metadata. Wrong values are among the cursor's faults, and left out. Raises SchemaError."""
        while self._cursor.next.startswith("+"):
            self._one()
        if not self._raw and not self._instants:
            return replace(verb, **self._values) if self._values else verb
        reading = self._policy()
        for field, quoted in self._instants.items():
            self._instant(field, quoted, reading)
        verb = replace(verb, policy=reading.policy, **self._values)
        if "schedule" in self._seen and not verb.schedule:  # it is wrong, and contradicts nothing
            return verb
        if verb.anchor and not is_interval(verb.schedule):
            at = self.at["anchor"] - 1
            self._fault(self._cursor.error(at, "+anchor is where +every counts from, and there is none"))
        for field, message in policy_faults(reading.policy, verb.schedule, reading.unread):
            self._fault(self._cursor.fault_in(self.at[field], message))
        return verb

    def _fault(self, fault: SchemaError) -> None:
        if len(self._cursor.faults) < _FAULTS_SHOWN:
            self._cursor.faults.append(fault)

    def _one(self) -> None:
        cursor = self._cursor
        word = cursor.next
        what = _VERB_FIELDS.get(word, word.removeprefix("+"))
        if what in self._seen:
            other = f" beside {self._seen[what]}" if self._seen[what] != word else " again"
            one = "schedule" if word in _SCHEDULES else word.removeprefix("+")
            raise cursor.error(cursor.index, f"{word}{other}: a verb has at most one {one}")
        self._seen[what] = word
        if word not in _ALL:
            raise self._unknown(word)
        cursor.advance()
        self.at[what] = cursor.index
        if word in _POLICIES:
            self._raw[what] = cursor.count() if what in _COUNTS else cursor.quoted().text
        elif word in _INSTANTS:
            self._instants[what] = cursor.quoted()
        else:
            try:
                self._values[what] = _READERS[word](cursor)
            except SchemaError as fault:
                if cursor.index == self.at[what]:  # no value at all, so that nobody knows where the text goes on
                    raise
                self._fault(fault)

    def _unknown(self, word: str) -> SchemaError:
        close = nearest(word, _ALL)
        message = f"{word[:40]} is no metadata; there are {', '.join(_ALL)}"
        return self._cursor.error(self._cursor.index, message, close)

    def _policy(self) -> Reading:
        if not self._raw:
            return Reading(DEFAULT_POLICY, ())
        reading = read_each(self._raw)
        for error in reading.errors:
            self._fault(self._cursor.fault_in(self.at[error.field], error.message, error.position, error.suggestion))
        return reading

    def _instant(self, field: str, quoted: Quoted, reading: Reading) -> None:
        try:
            text = format_instant(parse_instant(quoted.text, reading.policy.timezone))
        except InstantError as error:
            self._fault(self._cursor.fault_in(quoted.at, error.message, error.position, error.suggestion))
        else:
            self._values[field] = f"at {text}" if field == "schedule" else text


def _cron(cursor: Cursor) -> str:
    at = cursor.index
    text = cursor.read(check_schedule)
    word, _, rest = text.partition(" ")
    if word == "every":
        raise cursor.error(at, "an interval is no pattern", f'+every "{rest}"')
    if word == "at":
        raise cursor.error(at, "an instant is no pattern", f'+once "{rest}"')
    if text == "manual":
        raise cursor.error(at, "`manual` is no pattern", "+manual")
    return text


def _on_disconnect_fault(word: str) -> str | None:
    return None if word in ON_DISCONNECT else f"{word!r:.60} is neither `stop` nor `finish`"


_READERS: Final[dict[str, Callable[[Cursor], object]]] = {
    "+cron": _cron,
    "+every": lambda cursor: cursor.read(check_interval),
    "+manual": lambda _: "manual",
    "+timeout": lambda cursor: cursor.read(parse_duration),
    "+on_disconnect": lambda cursor: cursor.word(_on_disconnect_fault),
    "+payload": Cursor.json,
    "+async": lambda _: True,
}
