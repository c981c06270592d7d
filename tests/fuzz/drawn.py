"""What hypothesis draws for the targets: texts by their grammar, changed in places, messages by their descriptors."""

from pathlib import Path
from typing import Any, Final

from google.protobuf import message as protobuf
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message_factory import GetMessageClass
from hypothesis import strategies as st

from tests.unit.schema import strategies as grammar

SEEDS: Final = Path(__file__).parent / "corpus"
_TOKENS: Final = (
    b"*",
    b"/",
    b"-",
    b",",
    b" ",
    b"\n",
    b"\t",
    b"\x00",
    b"\xff",
    b"\xed\xa0\x80",
    b"\xc2\xa0",
    b"\xd9\xa1",
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b"(",
    b")",
    b":",
    b"0",
    b"59",
    b"60",
    b"99999999999999999999",
    b"-1",
    b"1e999",
    b"NaN",
    b"null",
    b"\xff\x00\xff",
    b"\xe2\x80\xae",
    b"L",
    b"every ",
    b"at ",
    b"UTC",
    b"Europe/Berlin",
    b"//",
    b"#",
    b"%",
    b"@",
)
_DEPTH_MAX: Final = 4
_INTEGERS: Final = (0, 1, 2, 7, 100, 1_001, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 1_767_225_600)
_TEXTS: Final = (
    "",
    "a",
    "fuzz",
    "fuzz.tick",
    "fuzz.ticks",
    "default",
    "tick",
    "a" * 201,
    "a" * 70_000,
    "a\x00b",
    "\u202e",
    "\U0001f600",
    "every 5m",
    "*/5 * * * *",
    "manual",
    "at 2030-01-01T00:00:00Z",
    "{}",
    '{"a":1}',
    "[" * 5_000,
    "1e999",
    '"\\ud800"',
    "Europe/Berlin",
    "running",
    "completed",
    "schedule",
    "policy.retries",
    "labels.a",
    "http://127.0.0.1:9/x",
    "127.0.0.1:9",
    "c" * 64,
    "%",
    "_",
    "'; --",
    "1h",
    "-5",
    "policy",
    "payload",
    "spec",
)


def seeds(target: str) -> list[bytes]:
    return [file.read_bytes() for file in sorted((SEEDS / target).glob("*"))]


@st.composite
def _changed(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    """Some of it cut out, said again, or replaced."""
    data = bytearray(draw(whole))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.sampled_from([0, 0, 1, 1, 2, 5, 20])))
        match draw(st.integers(0, 4)):
            case 0:
                data[start:end] = b""
            case 1:
                data[start:end] = data[start:end] * draw(st.sampled_from([2, 3, 40]))
            case 2:
                data[start:end] = draw(st.binary(max_size=4))
            case _:
                data[start:end] = draw(st.sampled_from(_TOKENS))
    return bytes(data)


_GRAMMAR: Final[dict[str, st.SearchStrategy[str]]] = {
    "pattern": grammar.PATTERNS,
    "schedule": grammar.SCHEDULES,
    "duration": grammar.DURATIONS,
    "instant": grammar.WHOLE_INSTANTS,
    "crontab": st.lists(grammar.FIVE.map("{} nice /srv/run.sh -q%in".format), max_size=4).map("\n".join),
}


def data_for(target: str) -> st.SearchStrategy[bytes]:
    """Its seeds and its grammar, changed or not, and anything at all."""
    whole = st.sampled_from(seeds(target) or [b""])
    if target in _GRAMMAR:
        whole = whole | _GRAMMAR[target].map(str.encode)
    return _changed(whole) | st.binary(max_size=300) | st.text(max_size=100).map(lambda text: text.encode())


def _value(draw: st.DrawFn, field: FieldDescriptor, depth: int) -> Any:
    kind = field.cpp_type
    if field.message_type is not None:
        return draw_message(draw, field.message_type, depth + 1)
    if kind == FieldDescriptor.CPPTYPE_STRING:
        text = draw(st.sampled_from(_TEXTS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
        return text.encode() if field.type == FieldDescriptor.TYPE_BYTES else text
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return draw(st.booleans())
    if kind in {FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT}:
        return draw(st.sampled_from([0.0, -1.0, 1.5, float("nan"), float("inf")]))
    if field.enum_type is not None:
        return draw(st.sampled_from([value.number for value in field.enum_type.values] + [99]))
    return draw(st.sampled_from(_integers(kind)))


def _integers(kind: int) -> list[int]:
    signed = kind in {FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64}
    bits = 32 if kind in {FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_UINT32} else 64
    highest = 2 ** (bits - signed) - 1
    found = [number for number in (*_INTEGERS, highest) if number <= highest]
    return [*found, -1, -(2 ** (bits - 1))] if signed else found


def draw_message(draw: st.DrawFn, descriptor: Descriptor, depth: int = 0) -> protobuf.Message:
    """Any of its fields may be set, to what is right, on an edge, or wrong."""
    message = GetMessageClass(descriptor)()
    for field in descriptor.fields:
        if draw(st.integers(0, 9)) >= (5 if depth == 0 else 4) or depth >= _DEPTH_MAX:
            continue
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            _fill_map(draw, message, field, depth)
        elif field.is_repeated:
            for _ in range(draw(st.integers(0, 3))):
                value = _value(draw, field, depth)
                getattr(message, field.name).append(value)
        elif field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
            getattr(message, field.name).CopyFrom(_value(draw, field, depth))
        else:
            setattr(message, field.name, _value(draw, field, depth))
    return message


def _fill_map(draw: st.DrawFn, message: protobuf.Message, field: FieldDescriptor, depth: int) -> None:
    assert field.message_type is not None, "a map is of messages"
    entry = field.message_type.fields_by_name
    for _ in range(draw(st.integers(0, 2))):
        key, value = _value(draw, entry["key"], depth), _value(draw, entry["value"], depth)
        if entry["value"].cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
            getattr(message, field.name)[key].CopyFrom(value)
        else:
            getattr(message, field.name)[key] = value


@st.composite
def messages(draw: st.DrawFn, descriptor: Descriptor) -> bytes:
    return draw_message(draw, descriptor).SerializeToString()
