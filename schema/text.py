"""The text form of a module, read: `module billing { verb close_month(Unit) Unit +cron "0 6 1 * *" }`.

    // Comments directly above a module or a verb document it; others are for the reader of the text alone.
    module finance/billing {
      verb close_month(Unit) Unit
        +cron "0 6 1 * *"
        +timeout "5m"
        +on_disconnect finish
        +async
    }

Layout is free. The namespace before the slash is left out for the default one.
"""

import difflib
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeVar

from schema.duration import DurationError, parse_duration
from schema.keys import DEFAULT_NAMESPACE
from schema.module import Module, Verb
from schema.schedule import ScheduleError, check_interval, check_schedule, is_interval
from schema.text_lex import END, SchemaError, Tokens, tokenize
from schema.text_print import print_module
from schema.types import TYPE_LIMIT, UNIT, read_type
from schema.validate import ON_DISCONNECT, name_fault, namespace_fault, validate

__all__ = ["SchemaError", "parse_module", "print_module"]

_ESCAPE: Final = re.compile(r"\\(.)")
_METADATA: Final = ("+cron", "+every", "+timeout", "+on_disconnect", "+async")
Value = TypeVar("Value")


def parse_module(text: str) -> Module:
    """The module that a text describes, its schedules in canonical form. Raises SchemaError at the first fault."""
    return _Parser(tokenize(text)).module()


class _Parser:
    """Recursive descent over the tokens."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._words = tokens.words
        self._index = 0

    def module(self) -> Module:
        doc = self._tokens.docs.get(self._index, "")
        self._take("module", "a module's text starts with `module`")
        namespace, name = DEFAULT_NAMESPACE, self._word(namespace_fault)
        if self._words[self._index] == "/":
            self._index += 1
            namespace, name = name, self._word(name_fault)
        else:
            self._check(self._index - 1, name_fault)
        self._take("{", "`{` opens the module")
        verbs: list[Verb] = []
        names: set[str] = set()
        while self._words[self._index] == "verb":
            at = self._index + 1
            verb = self._verb()
            if verb.name in names:
                raise self._tokens.error(at, f"the verb {verb.name} is declared twice")
            names.add(verb.name)
            verbs.append(verb)
        self._take("}", "a verb starts with `verb`, and `}` closes the module")
        self._take(END, "a text describes one module, so nothing follows its `}`")
        module = Module(name, tuple(verbs), namespace, doc)
        for flaw in validate(module):  # only limits are left to find: all else has been checked at its place
            raise SchemaError(f"{flaw.path}: {flaw.message}", 1, 1)
        return module

    def _verb(self) -> Verb:
        doc = self._tokens.docs.get(self._index, "")
        self._index += 1
        name = self._word(name_fault)
        self._take("(", "`(` stands before the type that the verb takes")
        request_at = self._index
        request = self._type()
        self._take(")", "`)` stands after the type that the verb takes")
        response_at = self._index
        response = self._type()
        verb = Verb(name, request, response, doc=doc)
        seen: dict[str, str] = {}
        while self._words[self._index].startswith("+"):
            verb = self._metadata(verb, seen)
        for at, type_ in ((request_at, request), (response_at, response)):
            if verb.schedule and type_ != UNIT:
                raise self._tokens.error(at, f"a verb with a schedule takes and returns {UNIT}, not {type_}", UNIT)
        return verb

    def _metadata(self, verb: Verb, seen: dict[str, str]) -> Verb:
        """The verb with one more metadata. `seen`: the metadata of this verb so far, by what they set."""
        at = self._index
        word = self._words[at]
        self._index += 1
        what = "schedule" if word in {"+cron", "+every"} else word
        if what in seen:
            other = f" beside {seen[what]}" if seen[what] != word else " again"
            raise self._tokens.error(at, f"{word}{other}: a verb has at most one {what.removeprefix('+')}")
        seen[what] = word
        match word:
            case "+cron":
                return replace(verb, schedule=self._cron())
            case "+every":
                return replace(verb, schedule=self._every())
            case "+timeout":
                return replace(verb, timeout_ms=self._quoted(parse_duration))
            case "+on_disconnect":
                return replace(verb, on_disconnect=self._word(_on_disconnect_fault))
            case "+async":
                return replace(verb, is_async=True)
        close = difflib.get_close_matches(word, _METADATA, 1)
        message = f"{word[:40]} is no metadata; there are {', '.join(_METADATA)}"
        raise self._tokens.error(at, message, close[0] if close else None)

    def _cron(self) -> str:
        at = self._index
        text = self._quoted(check_schedule)
        if is_interval(text):
            raise self._tokens.error(at, "an interval is no pattern", f'+every "{text.removeprefix("every ")}"')
        return text

    def _every(self) -> str:
        return self._quoted(check_interval)

    def _quoted(self, read: Callable[[str], Value]) -> Value:
        """What `read` makes of the text in quotes."""
        at = self._index
        word = self._words[at]
        if not word.startswith('"'):
            raise self._tokens.error(at, f"{self._words[at - 1]} is followed by a text in quotes")
        self._index += 1
        text = _ESCAPE.sub(r"\1", word[1:-1])
        try:
            return read(text)
        except (ScheduleError, DurationError) as error:
            inner = 1 + _escaped(word[1:-1], error.position)
            raise self._tokens.error(at, f"{self._words[at - 1]}: {error.message}", error.suggestion, inner) from None

    def _type(self) -> str:
        found, end = read_type(self._words, self._index)
        if not found:
            raise self._unexpected("here stands a type, like `Unit`, `Order` or `list[Order]`")
        if len(found) > TYPE_LIMIT:
            raise self._tokens.error(self._index, f"a type has at most {TYPE_LIMIT} characters")
        self._index = end
        return found

    def _word(self, fault: Callable[[str], str | None]) -> str:
        """The word that comes next, if `fault` finds none in it."""
        word = self._words[self._index]
        if not (word[:1].isalnum() or word[:1] == "_"):
            raise self._unexpected("here stands a name")
        self._check(self._index, fault)
        self._index += 1
        return word

    def _check(self, index: int, fault: Callable[[str], str | None]) -> None:
        found = fault(self._words[index])
        if found is not None:
            raise self._tokens.error(index, f"the word after `{self._words[index - 1]}`: {found}")

    def _take(self, word: str, otherwise: str) -> None:
        if self._words[self._index] != word:
            raise self._unexpected(otherwise)
        self._index += 1

    def _unexpected(self, rule: str) -> SchemaError:
        word = self._words[self._index]
        found = "the text ends" if word == END else f"`{word[:40]}`"
        return self._tokens.error(self._index, f"{found}, but {rule}")


def _escaped(text: str, position: int) -> int:
    """Where a position of the text without escapes is in the text with them."""
    for escape in _ESCAPE.finditer(text):
        if escape.start() < position:
            position += 1
    return position


def _on_disconnect_fault(word: str) -> str | None:
    return None if word in ON_DISCONNECT else f"{word!r:.60} is neither `stop` nor `finish`"
