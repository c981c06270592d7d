"""The text form in tokens, with the comments that document one, and errors by line and column."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

TEXT_LIMIT: Final = 16 * 1024 * 1024
END: Final = ""  # the token after the last

_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\r\n]+)
      | //(?P<comment>[^\n]*)
      | (?P<token> "(?:[^"\\\n]|\\[^\n])*" | \+?[A-Za-z0-9_][A-Za-z0-9_.\-]* | -[0-9.]+ | \.{3} | [{}()\[\],|/:=?] )""",
    re.VERBOSE,
)


class SchemaError(ValueError):
    """A text that is no module: what is wrong, where (`line` and `column` from 1), and what to write instead (or None).

    `str()` of it starts with line and column. `others`: faults behind this one that didn't keep the rest from being
    read, in their order; `every` has this one as well.
    """

    def __init__(
        self,
        message: str,
        line: int,
        column: int,
        suggestion: str | None = None,
        others: tuple["SchemaError", ...] = (),
    ) -> None:
        remedy = "" if suggestion is None else f"; write {suggestion!r}"
        super().__init__(f"{line}:{column}: {message}{remedy}")
        self.message = message
        self.line = line
        self.column = column
        self.suggestion = suggestion
        self.others = others

    @property
    def every(self) -> tuple["SchemaError", ...]:
        return (self, *self.others)

    def __reduce__(self) -> tuple[type["SchemaError"], tuple[str, int, int, str | None, tuple["SchemaError", ...]]]:
        return type(self), (self.message, self.line, self.column, self.suggestion, self.others)


def joined(faults: Iterable[SchemaError]) -> SchemaError:
    """One error of at least one: the first in the text, with the others."""
    first, *others = sorted(faults, key=lambda fault: (fault.line, fault.column))
    return SchemaError(first.message, first.line, first.column, first.suggestion, tuple(others))


class Tokens(NamedTuple):
    """The tokens of a text, each with its offset; the last is END. `docs`: comments directly above a token's line."""

    text: str
    words: list[str]
    offsets: list[int]
    docs: dict[int, str]

    def error(self, index: int, message: str, suggestion: str | None = None, inner: int = 0) -> SchemaError:
        """An error at a token, or `inner` characters into it."""
        return error_at(self.text, self.offsets[index] + inner, message, suggestion)


def error_at(text: str, offset: int, message: str, suggestion: str | None = None) -> SchemaError:
    line_start = text.rfind("\n", 0, offset) + 1
    return SchemaError(message, text.count("\n", 0, offset) + 1, offset - line_start + 1, suggestion)


def tokenize(text: str) -> Tokens:
    """Raises SchemaError for what is no token, and for a text that is too long."""
    if len(text) > TEXT_LIMIT:
        raise SchemaError(f"the text has {len(text)} characters; at most {TEXT_LIMIT} are allowed", 1, 1)
    tokens = Tokens(text, [], [], {})
    comments: list[str] = []  # on lines of their own, one after the other, up to the current place
    newlines = 1  # since the last token or comment; a text starts on a line of its own
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _no_token(text, position)
        if match.lastgroup == "space":
            newlines += match[0].count("\n")
            if newlines > 1:
                comments.clear()  # a blank line parts a comment from what follows
        elif match.lastgroup == "comment":
            if newlines:
                comments.append(match["comment"].removesuffix("\r").removeprefix(" "))
            newlines = 0
        else:
            if comments and newlines:
                tokens.docs[len(tokens.words)] = "\n".join(comments)
            comments.clear()
            newlines = 0
            tokens.words.append(match[0])
            tokens.offsets.append(position)
        position = match.end()
    tokens.words.append(END)
    tokens.offsets.append(len(text))
    return tokens


def _no_token(text: str, position: int) -> SchemaError:
    character = text[position]
    if character == '"':
        return error_at(text, position, "the text in quotes does not end on its line")
    if character == "/":
        return error_at(text, position, "a comment starts with two slashes")
    return error_at(text, position, f"{character!r} has no meaning here")
