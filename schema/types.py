"""Types in signatures and in records: `Unit`, `billing.Order`, `dict[str, list[int]] | None`, `Literal["a", 3]`.

Names are written down, compared and shown; what a name's record holds, if it is known, stands in its module's `types`.
"""

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

UNIT: Final = "Unit"
ANY: Final = "Any"
LITERAL: Final = "Literal"
TYPE_LIMIT: Final = 500

_STRING: Final = re.compile(r'"(?:[^"\\\n]|\\[^\n])*"')
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")
_TOKEN: Final = re.compile(rf"{_STRING.pattern}|{_NAME.pattern}|\.\.\.|-?[0-9]+|[\[\],|]|[^ ]")
_ELLIPSIS: Final = "..."
_SPELLED: Final = {",": ", ", "|": " | "}


def canonical_type(text: str) -> str | None:
    """The type in its one spelling; None when it isn't a name, or names with arguments and alternatives."""
    return None if len(text) > TYPE_LIMIT else _canonical(text)


@lru_cache(maxsize=10_000)  # a module's verbs take and return the same few
def _canonical(text: str) -> str | None:
    tokens = _TOKEN.findall(text)
    found, end = read_type(tokens, 0)
    return found if found and end == len(tokens) and len(found) <= TYPE_LIMIT else None


def type_tokens(canonical: str) -> list[str]:
    """The words of a canonical type: names, constants, and `[ ] , | ...`."""
    return _TOKEN.findall(canonical)


def read_type(words: Sequence[str], start: int) -> tuple[str, int]:
    """The longest type that starts at a word, in its one spelling, and the word after it. Empty if there is none.

    `...` may stand for an argument, and constants are those of `Literal`.
    """
    parts: list[str] = []
    complete = (0, start)  # so many parts were a complete type, up to that word
    depth = 0
    wants_name = True
    index = start
    while index < len(words):
        word = words[index]
        index += 1
        if wants_name and (_NAME.fullmatch(word) or (depth and word == _ELLIPSIS)):
            wants_name = False
            if word == LITERAL and words[index : index + 1] == ["["]:
                word, index = _literal(words, index)
                if word == LITERAL:
                    break
        elif word == "[" and not wants_name and not parts[-1].endswith(("]", _ELLIPSIS)):
            depth += 1
            wants_name = True
        elif word == "]" and not wants_name and depth:
            depth -= 1
        elif not wants_name and (word == "|" or (depth and word == ",")):
            wants_name = True
        else:
            break
        parts.append(_SPELLED.get(word, word))
        if not depth and not wants_name:
            complete = (len(parts), index)
    return "".join(parts[: complete[0]]), complete[1]


def _literal(words: Sequence[str], start: int) -> tuple[str, int]:
    """`Literal` with the constants that stand in brackets from `start` on; without them when they are none."""
    constants = []
    for index in range(start, len(words) - 1, 2):
        constant = _constant(words[index + 1])
        if constant is None:
            break
        constants.append(constant)
        if words[index + 2 : index + 3] == ["]"]:
            return f"{LITERAL}[{', '.join(constants)}]", index + 3
        if words[index + 2 : index + 3] != [","]:
            break
    return LITERAL, start


def _constant(word: str) -> str | None:
    """The canonical JSON of a constant in a Literal; None if it isn't one."""
    if word in {"true", "false", "null"} or _NUMBER.fullmatch(word):
        return word
    if not _STRING.fullmatch(word):
        return None
    try:
        text = json.dumps(json.loads(word), ensure_ascii=False)
        text.encode()  # lone surrogates
    except ValueError:
        return None
    return text
