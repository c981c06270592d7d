"""From bytes to a message, within bounds: what a reader of anybody's bytes uses in place of `FromString`.

Parsing is where little becomes much: an empty entry of a list has two bytes on the wire and some hundred in memory. So
a large message is walked through before it is parsed, and every message is held against `protos.caps` afterwards.
"""

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

from google.protobuf.message import DecodeError, Message

from cronring.protos.caps import Fault, FieldRule, faults, rules_of

# Compression is off in both directions: a cap on bytes is then one on what they become.
UNCOMPRESSED: Final = (
    ("grpc.compression_enabled_algorithms_bitset", 1),  # identity alone
    ("grpc.per_message_decompression", 0),
)
ANSWER_BYTES_MAX: Final = 32 * 1024 * 1024  # a controller's, to a call or on a runner's stream
WALKED_FROM: Final = 256 * 1024  # bytes; of less, nothing worth a walk can become
TEXTS_MAX: Final = 400_000  # in all lists together; a message, or an entry of a map, is as much as MESSAGE_WEIGHT
MESSAGE_WEIGHT: Final = 5
FIELDS_MAX: Final = 400_000
_LENGTH: Final = 2  # wire types: 0 varint, 1 eight bytes, 2 a length and so many bytes, 5 four bytes
_DEPTH_MAX: Final = 32
_ONE_BYTE: Final = 0x80  # numbers below it have one, and nearly all are

M = TypeVar("M", bound=Message)


class RefusedMessage(DecodeError):
    """Bytes that are no message, or one beyond its caps.

    `too_large`: it was not even parsed. `violations`: (path, description) of what is over a cap.
    """

    def __init__(self, text: str, violations: Sequence[Fault] = (), *, too_large: bool = False) -> None:
        super().__init__(text)
        self.violations = list(violations)
        self.too_large = too_large


def admitted(kind: type[M], raw: bytes) -> M:
    """The message. Raises RefusedMessage."""
    if len(raw) >= WALKED_FROM:
        _Walk(kind.DESCRIPTOR.name, raw).through(0, len(raw), rules_of(kind.DESCRIPTOR), 0)
    try:
        message = kind.FromString(raw)
    except DecodeError:
        raise RefusedMessage(f"these bytes are no {kind.DESCRIPTOR.name}") from None
    if over := faults(message):
        path, description = over[0]
        raise RefusedMessage(f"{path} {description}", over)
    return message


class _Walk:
    """Counts what a message would become, without making it. Hot: ten thousand jobs have 200,000 fields."""

    def __init__(self, name: str, raw: bytes) -> None:
        self._name = name
        self._raw = raw
        self._entries = self._fields = 0

    def through(self, at: int, end: int, rules: Mapping[int, FieldRule], depth: int) -> None:
        """The message that stands there. Raises RefusedMessage beyond the bounds, or for what nobody writes."""
        raw = self._raw
        if depth > _DEPTH_MAX:
            raise self._refused(f"nests messages more than {_DEPTH_MAX} deep")
        while at < end:
            tag, at = (raw[at], at + 1) if raw[at] < _ONE_BYTE else self._varint(at, end)
            wire_type, rule = tag & 7, rules.get(tag >> 3)
            if wire_type == _LENGTH and at < end:
                size, at = (raw[at], at + 1) if raw[at] < _ONE_BYTE else self._varint(at, end)
                after = at + size
            else:
                after = self._after(at, end, wire_type)
            if after > end:
                raise self._refused("ends in the middle of a field")
            self._count(rule, after - at)
            if rule is not None and rule.inner is not None and wire_type == _LENGTH:
                self.through(at, after, rules_of(rule.inner), depth + 1)
            at = after

    def _count(self, rule: FieldRule | None, size: int) -> None:
        self._fields += 1
        if rule is not None and rule.repeats:
            # Numbers are packed, each in ten bytes at most.
            self._entries += MESSAGE_WEIGHT if rule.inner is not None else 1 if rule.is_text else 1 + size // 10
        if self._entries > TEXTS_MAX or self._fields > FIELDS_MAX:
            raise self._refused(f"has more than {TEXTS_MAX // MESSAGE_WEIGHT} entries of lists, or {FIELDS_MAX} fields")

    def _after(self, at: int, end: int, wire_type: int) -> int:
        """Where the value ends that begins at `at`."""
        match wire_type:
            case 0:
                return self._varint(at, end)[1]
            case 1:
                return at + 8
            case 5:
                return at + 4
            case 2:
                raise self._refused("ends in the middle of a number")
            case _:
                raise self._refused("has groups, which nobody writes")

    def _varint(self, at: int, end: int) -> tuple[int, int]:
        value = shift = 0
        while at < end and shift < 70:
            byte = self._raw[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, at
            shift += 7
        raise self._refused("ends in the middle of a number")

    def _refused(self, why: str) -> RefusedMessage:
        return RefusedMessage(f"this {self._name} {why}", too_large=True)
