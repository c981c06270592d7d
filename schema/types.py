"""Names of types in a verb's signature: `Unit`, `billing.Order`, `dict[str, list[int]] | None`.

They are written down, compared and shown, never resolved: the type itself lives in the author's process.
"""

import re
from collections.abc import Sequence
from typing import Final

UNIT: Final = "Unit"
ANY: Final = "Any"
TYPE_LIMIT: Final = 500

_TOKEN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*|[\[\],|]|[^ ]")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")


def canonical_type(text: str) -> str | None:
    """The type in its one spelling; None when it isn't a name, or names with arguments and alternatives."""
    if len(text) > TYPE_LIMIT:
        return None
    tokens = _TOKEN.findall(text)
    found, end = read_type(tokens, 0)
    return found if found and end == len(tokens) and len(found) <= TYPE_LIMIT else None


def read_type(words: Sequence[str], start: int) -> tuple[str, int]:
    """The longest type that starts at a word, in its one spelling, and the word after it. Empty if there is none."""
    parts: list[str] = []
    complete = 0  # so many words were a complete type
    depth = 0
    wants_name = True
    for index in range(start, len(words)):
        word = words[index]
        if _NAME.fullmatch(word) and wants_name:
            wants_name = False
        elif word == "[" and not wants_name and parts[-1] != "]":
            depth += 1
            wants_name = True
        elif word == "]" and not wants_name and depth:
            depth -= 1
        elif word in {",", "|"} and not wants_name and (depth or word == "|"):
            wants_name = True
        else:
            break
        parts.append({",": ", ", "|": " | "}.get(word, word))
        if not depth and not wants_name:
            complete = len(parts)
    return "".join(parts[:complete]), start + complete
