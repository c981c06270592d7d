"""Arrays in PostgreSQL's binary format, packed and unpacked at once.

A batch goes to PostgreSQL as columns. For each element, asyncpg asks two abstract classes whether it is an array
itself, and calls its type's codec. To pack a column in one go costs a fifth of that. The layout is array_recv's
(src/backend/utils/adt/arrayfuncs.c). It begins with the number of dimensions, whether there are nulls, and the
elements' type. Then come the one dimension's length and first index. Each element has its number of bytes (-1: null)
and its bytes.
"""

import contextlib
import struct
from collections.abc import Iterator, Sequence
from typing import Any, Final

from cronring.controller.store.connect import EPOCH_2000_US, FIRST_US, LAST_US, Connection

# Oids, and those of their arrays, are fixed (src/include/catalog/pg_type.dat).
_BIGINT, _INTEGER, _TEXT, _TIMESTAMPTZ = 20, 23, 25, 1184
_BIGINTS, _INTEGERS, _TEXTS, _INSTANTS = 1016, 1007, 1009, 1185
_HEAD: Final = struct.Struct(">iiIii")
_EMPTY: Final = struct.Struct(">iiI")
_LENGTH: Final = struct.Struct(">i")
_NULL: Final = _LENGTH.pack(-1)
_WIDE: Final = struct.Struct(">iq")
_NARROW: Final = struct.Struct(">ii")
_FIRST: Final = FIRST_US - EPOCH_2000_US
_LAST: Final = LAST_US - EPOCH_2000_US


def encode_bigints(values: Sequence[int | None]) -> bytes:
    """bigint[]. Raises struct.error for what is no 64-bit integer."""
    return _fixed(_BIGINT, _WIDE, values)


def encode_integers(values: Sequence[int | None]) -> bytes:
    """integer[]. Raises struct.error for what is no 32-bit integer."""
    return _fixed(_INTEGER, _NARROW, values)


def encode_instants(values: Sequence[int | None]) -> bytes:
    """timestamptz[] of microseconds since 1970, moved to what Python can print (years 1 to 9999)."""
    with contextlib.suppress(TypeError):  # there are nulls
        instants = [value - EPOCH_2000_US for value in values]  # type: ignore[operator]  # a check costs double
        if not instants or (min(instants) >= _FIRST and max(instants) <= _LAST):
            return _fixed(_TIMESTAMPTZ, _WIDE, instants)
    return _fixed(_TIMESTAMPTZ, _WIDE, [None if value is None else _since_2000(value) for value in values])


def encode_texts(values: Sequence[str | None]) -> bytes:
    """text[]. Equal texts are encoded once. Raises UnicodeEncodeError for lone surrogates."""
    if not values:
        return _EMPTY.pack(0, 0, _TEXT)
    encoded = {value: _text(value) for value in set(values)}
    elements = b"".join([encoded[value] for value in values])
    return _HEAD.pack(1, None in encoded, _TEXT, len(values), 1) + elements


def _fixed(oid: int, element: struct.Struct, values: Sequence[int | None]) -> bytes:
    """`element`: the layout of one element, its length and its value."""
    count = len(values)
    if not count:
        return _EMPTY.pack(0, 0, oid)
    width = element.size - _LENGTH.size
    flat: list[Any] = [width] * (2 * count)
    flat[1::2] = values
    try:
        return _HEAD.pack(1, 0, oid, count, 1) + struct.pack(">" + element.format[1:] * count, *flat)
    except struct.error:
        if None not in values:
            raise
    elements = b"".join([_NULL if value is None else element.pack(width, value) for value in values])
    return _HEAD.pack(1, 1, oid, count, 1) + elements


def _since_2000(instant: int) -> int:
    return min(max(instant - EPOCH_2000_US, _FIRST), _LAST)


def _text(value: str | None) -> bytes:
    if value is None:
        return _NULL
    encoded = value.encode()
    return _LENGTH.pack(len(encoded)) + encoded


def decode_integers(data: bytes) -> list[int | None]:
    """What encode_bigints and encode_integers made."""
    return [None if element is None else int.from_bytes(element, signed=True) for element in _elements(data)]


def decode_instants(data: bytes) -> list[int | None]:
    """What encode_instants made."""
    return [None if value is None else value + EPOCH_2000_US for value in decode_integers(data)]


def decode_texts(data: bytes) -> list[str | None]:
    """What encode_texts made."""
    return [None if element is None else element.decode() for element in _elements(data)]


def _elements(data: bytes) -> Iterator[bytes | None]:
    """The elements of an array with at most one dimension: no statement answers with more."""
    dimensions, _, _ = _EMPTY.unpack_from(data)
    at = _HEAD.size
    while dimensions and at < len(data):
        length: int = _LENGTH.unpack_from(data, at)[0]
        at += _LENGTH.size
        yield None if length < 0 else data[at : at + length]
        at += max(length, 0)


def prepare_columns(connection: Connection) -> None:
    """Have this connection's statements take and give bigint[], integer[], timestamptz[] and text[] by these functions.

    `Connection.set_type_codec` does this for scalars, but refuses arrays. The method that it calls does not, so it is
    called here.
    """
    settings = connection._protocol.get_settings()  # type: ignore[attr-defined]  # noqa: SLF001  # as above
    for oid, name, encoder, decoder in (
        (_BIGINTS, "_int8", encode_bigints, decode_integers),
        (_INTEGERS, "_int4", encode_integers, decode_integers),
        (_TEXTS, "_text", encode_texts, decode_texts),
        (_INSTANTS, "_timestamptz", encode_instants, decode_instants),
    ):
        settings.add_python_codec(oid, name, "pg_catalog", (), "scalar", encoder, decoder, "binary")
