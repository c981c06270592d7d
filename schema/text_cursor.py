"""Where a reader of the text form stands among its tokens, and what it may take next."""

import json
import re
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from cronring.schema.duration import DurationError
from cronring.schema.payload import canonical_json
from cronring.schema.schedule import ScheduleError
from cronring.schema.text_lex import END, SchemaError, Tokens
from cronring.schema.types import TYPE_LIMIT, read_type

_ESCAPE: Final = re.compile(r"\\(.)")
_DECODER: Final = json.JSONDecoder()
Value = TypeVar("Value")


class Quoted(NamedTuple):
    """A text in quotes, without them and its escapes, and where its token is."""

    text: str
    at: int


class Cursor:
    """`index`: of the token that comes next. Whatever is taken is checked first; SchemaError names its place.

    `faults`: what is wrong so far, where the rest could be read all the same.
    """

    def __init__(self, tokens: Tokens) -> None:
        self.index = 0
        self.faults: list[SchemaError] = []
        self._tokens = tokens
        self._words = tokens.words

    @property
    def next(self) -> str:
        """The token that comes next; END at the end."""
        return self._words[self.index]

    @property
    def doc(self) -> str:
        """What the comments directly above the next token say."""
        return self._tokens.docs.get(self.index, "")

    def advance(self) -> str:
        """Take the next token, whatever it is."""
        word = self._words[self.index]
        self.index += 1
        return word

    def take(self, word: str, otherwise: str) -> None:
        if self._words[self.index] != word:
            raise self.unexpected(otherwise)
        self.index += 1

    def take_if(self, word: str) -> bool:
        """Take the next token if it is this one."""
        found = self._words[self.index] == word
        self.index += found
        return found

    def word(self, fault: Callable[[str], str | None]) -> str:
        """The word that comes next, if `fault` finds none in it."""
        word = self._words[self.index]
        if not (word[:1].isalnum() or word[:1] == "_"):
            raise self.unexpected("here stands a name")
        self.check(self.index, fault)
        self.index += 1
        return word

    def check(self, index: int, fault: Callable[[str], str | None]) -> None:
        self.check_text(index, self._words[index], fault)

    def check_text(self, index: int, text: str, fault: Callable[[str], str | None]) -> None:
        """Of a text that begins with that token."""
        found = fault(text)
        if found is not None:
            raise self.error(index, f"the word after `{self._words[index - 1]}`: {found}")

    def count(self) -> int:
        """A number of at most nine digits."""
        word = self._words[self.index]
        digits = word.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 9):
            raise self.unexpected(f"{self._words[self.index - 1]} is followed by a whole number, without quotes")
        self.index += 1
        return int(word)

    def quoted(self) -> Quoted:
        at = self.index
        word = self._words[at]
        if not word.startswith('"'):
            raise self.error(at, f"{self._words[at - 1]} is followed by a text in quotes")
        self.index += 1
        return Quoted(_ESCAPE.sub(r"\1", word[1:-1]), at)

    def read(self, read: Callable[[str], Value]) -> Value:
        """What `read` makes of the text in quotes that comes next."""
        quoted = self.quoted()
        try:
            return read(quoted.text)
        except (ScheduleError, DurationError) as error:
            raise self.fault_in(quoted.at, error.message, error.position, error.suggestion) from None

    def fault_in(self, at: int, message: str, position: int = 0, suggestion: str | None = None) -> SchemaError:
        """An error in the value that is the token `at`, at that position of its text."""
        word = self._words[at]
        inner = 1 + _escaped(word[1:-1], position) if word.startswith('"') else 0
        return self.error(at, f"{self._words[at - 1]}: {message}", suggestion, inner)

    def type(self) -> str:
        found, end = read_type(self._words, self.index)
        if not found:
            raise self.unexpected("here stands a type, like `Unit`, `Order` or `list[Order]`")
        if len(found) > TYPE_LIMIT:
            raise self.error(self.index, f"a type has at most {TYPE_LIMIT} characters")
        self.index = end
        return found

    def json(self) -> str:
        """The JSON value that comes next, in its canonical text."""
        start = self._tokens.offsets[self.index]
        try:
            value, end = _DECODER.raw_decode(self._tokens.text, start)
            found = canonical_json(value)
        except (ValueError, RecursionError):
            raise self.unexpected("here stands a JSON value") from None
        while self._words[self.index] != END and self._tokens.offsets[self.index] < end:
            self.index += 1
        return found

    def unexpected(self, rule: str) -> SchemaError:
        word = self._words[self.index]
        found = "the text ends" if word == END else f"`{word[:40]}`"
        return self.error(self.index, f"{found}, but {rule}")

    def error(self, index: int, message: str, suggestion: str | None = None, inner: int = 0) -> SchemaError:
        return self._tokens.error(index, message, suggestion, inner)


def _escaped(text: str, position: int) -> int:
    """Where a position of the text without escapes is in the text with them."""
    for escape in _ESCAPE.finditer(text):
        if escape.start() < position:
            position += 1
    return position
