"""Amounts of memory in text: `256MiB`, `1GiB`, `512MB`. Whole bytes; KiB, MiB... count by 1,024, KB, MB... by 1,000."""

import re
from typing import Final

_UNITS: Final = {
    "TiB": 1 << 40,
    "TB": 10**12,
    "GiB": 1 << 30,
    "GB": 10**9,
    "MiB": 1 << 20,
    "MB": 10**6,
    "KiB": 1 << 10,
    "KB": 10**3,
    "B": 1,
}
_WHOLE: Final = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,6})?)([A-Za-z]*)", re.ASCII)
_TEXT_LIMIT: Final = 100
_BYTES_DIGITS: Final = 7
# Docker's and systemd's `256m` and Kubernetes' `256Mi` count by 1,024; the rest is what people write.
_OTHER_NAMES: Final = {
    **{f"{letter}{end}": f"{letter.upper()}iB" for letter in "kmgt" for end in ("", "i", "ib")},
    **{f"{letter}b": f"{letter.upper()}B" for letter in "kmgt"},
    **dict.fromkeys(("b", "byte", "bytes"), "B"),
    "megabyte": "MB",
    "megabytes": "MB",
    "gigabyte": "GB",
    "gigabytes": "GB",
}


class SizeError(ValueError):
    """A text that is no amount of memory.

    `message` says what is wrong, `position` where (0-based offset in the text), `suggestion` what to write instead
    (None where nothing says the same).
    """

    def __init__(self, message: str, position: int, suggestion: str | None = None) -> None:
        super().__init__(message if suggestion is None else f"{message}; write {suggestion!r}")
        self.message = message
        self.position = position
        self.suggestion = suggestion

    def __reduce__(self) -> tuple[type["SizeError"], tuple[str, int, str | None]]:
        return type(self), (self.message, self.position, self.suggestion)


def parse_size(text: str) -> int:
    """Bytes, at least one. Raises SizeError."""
    if len(text) > _TEXT_LIMIT:
        raise SizeError(f"{len(text)} characters are too many for an amount of memory", _TEXT_LIMIT)
    if not text:
        raise SizeError("the amount of memory is empty; `256MiB`, `1GiB` and `512MB` are some", 0)
    found = _WHOLE.fullmatch(text)
    if found is None or found[2] not in _UNITS:
        raise _malformed(text)
    number, unit = found.groups()
    whole, _, fraction = number.partition(".")
    parts: int = 10 ** len(fraction)
    size, rest = divmod(int(whole + fraction) * _UNITS[unit], parts)
    if rest or not size:
        nearest = format_size(size + 1) if rest else None
        raise SizeError("an amount of memory is a whole number of bytes, above zero", 0, nearest)
    return size


def format_size(size: int) -> str:
    """The text with the fewest digits: `1GiB`, `1536MiB`, `512MB`. The inverse of parse_size."""
    if size < 1:
        raise ValueError(f"{size} is no amount of memory")
    whole = [(size // unit, name) for name, unit in _UNITS.items() if size % unit == 0]
    amount, name = min(whole, key=lambda each: len(str(each[0])))
    return f"{amount}{name}"


def rounded_size(size: int) -> str:
    """For people: `301 MiB`, `1.4 GiB`."""
    if size >= 1 << 30:
        return f"{size / (1 << 30):.1f} GiB"
    return f"{size / (1 << 20):.0f} MiB" if size >= 1 << 20 else f"{size / (1 << 10):.0f} KiB"


def _malformed(text: str) -> SizeError:
    digits = re.match(r"[0-9]*(?:\.[0-9]+)?", text, re.ASCII)
    position = digits.end() if digits is not None else 0
    if position == 0:
        what = "a number is missing"
    elif position == len(text):
        what = "a unit is missing"
    else:
        what = f"{text[position:].strip()!r} is no unit"
    units = "KiB, MiB, GiB, TiB (by 1,024) and KB, MB, GB, TB (by 1,000)"
    return SizeError(f"{what}; units are {units}", position, _mended(text))


def _mended(text: str) -> str | None:
    """The text without spaces, and with a unit of ours, if that was all that was wrong."""
    found = _WHOLE.fullmatch(re.sub(r"[\s,_]+", "", text))
    if found is None:
        return None
    unit = _OTHER_NAMES.get(found[2].lower())
    if not found[2]:  # of bytes there are millions
        unit = "B" if len(found[1]) >= _BYTES_DIGITS else "MiB"
    if unit is None:
        return None
    try:
        size = parse_size(f"{found[1]}{unit}")
    except SizeError:
        return None
    return format_size(size)
