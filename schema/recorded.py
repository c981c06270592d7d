"""What is kept of what an execution has printed: its end, under a line that says how much is missing before it."""

import re
from typing import Final, NamedTuple

KEEP_BYTES: Final = 64 * 1024
_MARK: Final = "[… earlier output cut …]\n"
_COUNTED: Final = "[… {} bytes of earlier output cut …]\n"
_AT_LEAST: Final = "[… more than {} bytes of earlier output cut …]\n"
_ANY_MARK: Final = re.compile(r"\[… (?:(?:more than )?(\d{1,18}) bytes of )?earlier output cut …\]\n")
MARK_BYTES_MAX: Final = len(_AT_LEAST.format(10**18).encode())


class Recorded(NamedTuple):
    """`begins_at`: the offset of the first byte of `data` in all that was printed."""

    begins_at: int
    data: bytes


def cut_mark(begins_at: int, *, lossy: bool) -> str:
    """The line above a text that begins there. `lossy`: more had been printed, which nobody has counted."""
    if not begins_at:
        return _MARK
    return (_AT_LEAST if lossy else _COUNTED).format(begins_at)


def read_recorded(output: str) -> Recorded:
    """What stands below the mark, and where it began."""
    found = _ANY_MARK.match(output)
    if found is None:
        return Recorded(0, output.encode())
    return Recorded(int(found[1] or 0), output[found.end() :].encode())
