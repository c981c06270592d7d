"""A zone's offsets out of a compiled zone file (TZif, RFC 9636), with those of its footer up to 2100 written out."""

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from cronring.schema.search import CLOCK_END
from cronring.schema.zone_rule import parse_rule

_HEADER: Final = struct.Struct(">4sc15x6l")
_TYPE: Final = struct.Struct(">lbB")
_MARGIN: Final = 366 * 86_400  # past 2099, so that an instant's surroundings are right as well


class Offsets(NamedTuple):
    """From `starts[n]` (UTC seconds) on, `offsets[n]` (seconds east of UTC) holds. The first start is of no moment."""

    starts: tuple[int, ...]
    offsets: tuple[int, ...]


class _Block(NamedTuple):
    """What a header says of the data after it: where they begin, and how many of each there are."""

    start: int
    changes: int
    types: int
    designations: int
    leaps: int
    indicators: int

    def length(self, time_size: int) -> int:
        changes, leaps = self.changes * (time_size + 1), self.leaps * (time_size + 4)
        return changes + self.types * _TYPE.size + self.designations + leaps + self.indicators


def read_offsets(data: bytes) -> Offsets:
    """Every stretch of one offset, to the year after 2099. Changes of name alone are left out.

    Raises ValueError when it is no zone file of version 2 or later.
    """
    old = _header(data, 0)
    block = _header(data, old.start + old.length(4))
    end = block.start + 8 * block.changes
    instants = struct.unpack_from(f">{block.changes}q", data, block.start)
    kinds = data[end : end + block.changes]
    types_at = end + block.changes
    known = [_TYPE.unpack_from(data, types_at + number * _TYPE.size)[0] for number in range(block.types)]
    footer = data[block.start + block.length(8) :].decode("ascii").strip("\n")
    return _merged(known[0], _changes(instants, [known[kind] for kind in kinds], footer))


def _header(data: bytes, start: int) -> _Block:
    magic, version, universal, standard, leaps, changes, types, designations = _HEADER.unpack_from(data, start)
    if magic != b"TZif" or version < b"2":
        raise ValueError("not a zone file of version 2 or later")
    return _Block(start + _HEADER.size, changes, types, designations, leaps, universal + standard)


def _changes(instants: tuple[int, ...], offsets: list[int], footer: str) -> Iterator[tuple[int, int]]:
    """The table's changes, then those of the footer's rule, which holds after the last of the table."""
    yield from zip(instants, offsets, strict=True)
    if footer:
        last = instants[-1] if instants else -1
        yield from parse_rule(footer).changes(last, CLOCK_END + _MARGIN)


def _merged(first: int, changes: Iterator[tuple[int, int]]) -> Offsets:
    """Before the first change the first type holds (RFC 9636, 3.2). Of two changes at one instant the later holds."""
    starts, offsets = [-(1 << 62)], [first]
    for at, offset in changes:
        if at == starts[-1]:
            starts.pop()
            offsets.pop()
        if offset != offsets[-1]:
            starts.append(at)
            offsets.append(offset)
    return Offsets(tuple(starts), tuple(offsets))
