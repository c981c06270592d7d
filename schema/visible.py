"""Strangers' text for people: what a terminal or an editor would obey, or hide, is shown instead.

What a verb prints, a job's note, an error of somebody's server: whoever writes these may not move the cursor, set the
title of a window, turn letters round or write lines of its own between ours.
"""

import re
from typing import Final

# Controls (C0, DEL, C1), what turns the direction of text, what has no width, separators that break lines, halves of
# pairs, which no encoding takes. Not here: the newline and the tab, which blocks of text may have.
_OBEYED: Final = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    r"\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff"
    r"\U000110bd\U000110cd\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_IN_BLOCKS: Final = re.compile(f"[{_OBEYED}]")
_IN_LINES: Final = re.compile(rf"[\n\t{_OBEYED}]")
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}

_SGR: Final = re.compile(r"(\x1b\[[0-9;]{0,32}m)")
_BEGUN: Final = re.compile(r"(?:\r|\x1b(?:\[[0-9;]{0,32})?)\Z")  # of CRLF, or of a colour
# No blinking, and nothing that hides text.
_STYLES: Final = frozenset(
    {0, 1, 2, 3, 4, 7, 9, 22, 23, 24, 27, 29, 39, 49, *range(30, 38), *range(40, 48), *range(90, 98), *range(100, 108)}
)
RESET: Final = "\x1b[0m"


def visible_line(text: str) -> str:
    r"""As one line: newlines and tabs are shown too, as \n and \t."""
    if text.isascii() and text.isprintable():
        return text
    return _IN_LINES.sub(_shown, text)


def visible_block(text: str) -> str:
    """As lines: newlines and tabs stay, and so does the end of a line in two characters, as a plain one."""
    return _IN_BLOCKS.sub(_shown, text.replace("\r\n", "\n"))


def visible_json(text: str) -> str:
    r"""JSON stays the same value, and what a terminal would obey in its strings is written as \uXXXX."""
    return _IN_BLOCKS.sub(_in_json, text)


def _shown(match: re.Match[str]) -> str:
    char = match[0]
    code = ord(char)
    if char in _SHORT:
        return _SHORT[char]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _in_json(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


class VisibleStream:
    """Text that comes in pieces, such as a verb's output. With `colours` its colours are kept, and end with it."""

    def __init__(self, *, colours: bool = False) -> None:
        self._colours = colours
        self._held = ""
        self._styled = False

    def feed(self, piece: str) -> str:
        """What can be shown by now: a colour, or the end of a line, that has only begun waits for its rest."""
        text = self._held + piece
        begun = _BEGUN.search(text)
        at = begun.start() if begun else len(text)
        self._held = text[at:]
        return self._visible(text[:at])

    def end(self) -> str:
        """The rest, without any colour from there on. Another piece may follow."""
        rest, self._held = self._visible(self._held), ""
        reset = RESET if self._styled else ""
        self._styled = False
        return rest + reset

    def _visible(self, text: str) -> str:
        if not self._colours:
            return visible_block(text)
        return "".join(self._part(part) for part in _SGR.split(text))

    def _part(self, part: str) -> str:
        if not _SGR.fullmatch(part) or not _is_style(part[2:-1]):
            return visible_block(part)
        self._styled = True
        return part


def _is_style(parameters: str) -> bool:
    """Colours, bold and their like, with all numbers that they need."""
    numbers = [int(number or 0) for number in parameters.split(";")]
    while numbers:
        first = numbers.pop(0)
        if first in {38, 48}:  # a colour by its number, or by red, green and blue
            parts = {5: 1, 2: 3}.get(numbers[0] if numbers else -1, 0)
            if not parts or len(numbers) <= parts or max(numbers[1 : 1 + parts]) > 255:
                return False
            del numbers[: 1 + parts]
        elif first not in _STYLES:
            return False
    return True
