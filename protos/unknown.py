"""Fields of a message that this release's protos don't name: whoever wrote it is newer.

Protobuf keeps them as they came, and nobody sees them. On streams and in gossip that is meant: older programs do
without what they don't know. What somebody declares is another matter: it would be kept as if they had never said it.
"""

from collections.abc import Iterator
from typing import Any, Final, TypeVar

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

SHOWN: Final = 20
NEWER: Final = "is described by a newer cronring"
REMEDY: Final = "upgrade the controllers first"

M = TypeVar("M", bound=Message)


def unknown_fields(message: M) -> list[tuple[str, str]]:
    """The first few, as (path of the message, what to say); the path of the message itself is ""."""
    known = type(message)()
    known.CopyFrom(message)
    known.DiscardUnknownFields()
    if known.ByteSize() == message.ByteSize():  # nearly always: all else is slow, in Python
        return []
    found: list[tuple[str, str]] = []
    for path, number in _walk(message, ""):
        if len(found) == SHOWN:
            break
        found.append((path, f"{NEWER} (field {number} of {message.DESCRIPTOR.name}): {REMEDY}"))
    return found


def _walk(message: Message, path: str) -> Iterator[tuple[str, int]]:
    for field in UnknownFieldSet(message):
        yield path, field.field_number
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None:
            for name, inner in _inner(descriptor, value):
                yield from _walk(inner, f"{path}.{name}" if path else name)


def _inner(descriptor: Any, value: Any) -> Iterator[tuple[str, Message]]:
    """The messages of one field, by name and place. Ours have no maps of messages."""
    if descriptor.message_type.GetOptions().map_entry:
        return
    if isinstance(value, Message):
        yield descriptor.name, value
        return
    for index, each in enumerate(value):
        yield f"{descriptor.name}[{index}]", each
