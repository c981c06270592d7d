"""From bytes to a message, within bounds: what a reader of anybody's bytes uses in place of `FromString`.

Parsing is where little becomes much: an empty entry of a list has two bytes on the wire and some hundred in memory. So
a large message is walked through before it is parsed, and every message is held against `protos.caps` afterwards.
"""

from collections.abc import Sequence
from typing import Any, Final, TypeVar

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
        _Walk(kind.DESCRIPTOR.name).through(memoryview(raw), kind.DESCRIPTOR, 0)
    try:
        message = kind.FromString(raw)
    except DecodeError:
        raise RefusedMessage(f"these bytes are no {kind.DESCRIPTOR.name}") from None
    if over := faults(message):
        path, description = over[0]
        raise RefusedMessage(f"{path} {description}", over)
    return message


def _weight(rule: FieldRule, size: int) -> int:
    if rule.inner is not None:
        return MESSAGE_WEIGHT
    return 1 if rule.is_text else 1 + size // 10  # numbers are packed, each in ten bytes at most


class _Walk:
    """Counts what a message would become, without making it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._entries = self._fields = 0

    def through(self, raw: memoryview, descriptor: Any, depth: int) -> None:
        """Raises RefusedMessage beyond ENTRIES_MAX or FIELDS_MAX, or for what nobody writes."""
        rules, at = rules_of(descriptor), 0
        if depth > _DEPTH_MAX:
            raise self._refused(f"nests messages more than {_DEPTH_MAX} deep")
        while at < len(raw):
            tag, at = self._varint(raw, at)
            wire_type, rule = tag & 7, rules.get(tag >> 3)
            self._fields += 1
            begins = at
            at = self._after(raw, at, wire_type)
            if rule is not None and rule.repeats:
                self._entries += _weight(rule, at - begins)
            if self._entries > TEXTS_MAX or self._fields > FIELDS_MAX:
                raise self._refused(
                    f"has more than {TEXTS_MAX // MESSAGE_WEIGHT} entries of lists, or {FIELDS_MAX} fields"
                )
            if rule is not None and rule.inner is not None and wire_type == _LENGTH:
                length, begins = self._varint(raw, begins)
                self.through(raw[begins : begins + length], rule.inner, depth + 1)

    def _after(self, raw: memoryview, at: int, wire_type: int) -> int:
        """Where the value ends that begins at `at`."""
        match wire_type:
            case 0:
                return self._varint(raw, at)[1]
            case 1:
                end = at + 8
            case 2:
                length, begins = self._varint(raw, at)
                end = begins + length
            case 5:
                end = at + 4
            case _:
                raise self._refused("has groups, which nobody writes")
        if end > len(raw):
            raise self._refused("ends in the middle of a field")
        return end

    def _varint(self, raw: memoryview, at: int) -> tuple[int, int]:
        value = shift = 0
        while at < len(raw) and shift < 70:
            byte = raw[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, at
            shift += 7
        raise self._refused("ends in the middle of a number")

    def _refused(self, why: str) -> RefusedMessage:
        return RefusedMessage(f"this {self._name} {why}", too_large=True)
