"""Payloads held against the types of a module."""

import pytest
from hypothesis import given

from cronring.schema.module import DataField, DataType, Module
from cronring.schema.payload import (
    PAYLOAD_LIMIT,
    NoPayload,
    Type,
    canonical_json,
    parse_type,
    payload_faults,
    read_payload,
)
from cronring.schema.types import canonical_type
from tests.support.costs import cpu_s
from tests.unit.schema.strategies import JSON_VALUES, TYPES

ORDER = DataType(
    "Order",
    (
        DataField("id", "int"),
        DataField("lines", "list[shop.Line]", True),
        DataField("note", "str | None", True, "null"),
        DataField("state", 'Literal["open", "paid", 3]', True, '"open"'),
        DataField("pair", "tuple[int, str]", True),
        DataField("by", "dict[str, list[float]]", True),
        DataField("parent", "Optional[Order]", True),
        DataField("when", "datetime.datetime", True),
    ),
)
LINE = DataType("shop.Line", (DataField("sku", "str"),))
SHOP = Module("shop", types=(ORDER, LINE))


@pytest.mark.parametrize(
    ("type_text", "payload"),
    [
        ("Unit", "null"),
        ("None", "null"),
        ("int", "-3"),
        ("float", "3"),
        ("float", "3.5"),
        ("str", '"é"'),
        ("bool", "false"),
        ("Any", '{"x": [1]}'),
        ("Unknown", '{"x": [1]}'),
        ("Unknown[int]", "1"),
        ("list", '[1, "a"]'),
        ("set[int]", "[1, 1]"),
        ("tuple[int, ...]", "[]"),
        ("tuple[int, str]", '[1, "a"]'),
        ("dict", '{"a": 1}'),
        ("dict[str, int | None]", '{"a": null}'),
        ("Union[int, str]", '"a"'),
        ("Literal[1, true, null]", "true"),
        ("Order", '{"id": 1}'),
        ("datetime.date", '"2026-03-01"'),
        ("datetime.datetime | None", "null"),
        ("list[uuid.UUID]", '["12345678123456781234567812345678"]'),
        ("decimal.Decimal", "12.5"),
        ("decimal.Decimal", '"12.50"'),
        (
            "list[Order] | None",
            '[{"id": 1, "lines": [{"sku": "a"}], "note": "x", "state": 3, "pair": [1, "a"],'
            ' "by": {"x": [1, 2.5]}, "parent": {"id": 2, "parent": null}, "when": "2026-03-01T08:00:00Z"}]',
        ),
    ],
)
def test_what_fits(type_text: str, payload: str):
    assert payload_faults(SHOP, type_text, payload) == []


@pytest.mark.parametrize(
    ("type_text", "payload", "faults"),
    [
        ("Unit", "1", ["$: is 1, not Unit"]),
        ("int", "true", ["$: is true, not int"]),
        ("int", "1.0", ["$: is 1.0, not int"]),
        ("float", '"1"', ['$: is "1", not float']),
        ("bool", "1", ["$: is 1, not bool"]),
        (
            "str",
            "[" + "1," * 100 + "1]",
            ["$: is [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1…, not str"],
        ),
        ("list[int]", '[1, "a", null]', ['$[1]: is "a", not int', "$[2]: is null, not int"]),
        ("tuple[int, str]", "[1]", ["$: has 1 items, but tuple[int, str] has 2"]),
        ("dict[str, int]", '{"a b": "x", "c": 1}', ['$["a b"]: is "x", not int']),
        ("int | str", "[]", ["$: is [], not int | str"]),
        ("int | None", '"a"', ['$: is "a", not int']),
        ("Literal[1, true]", "false", ["$: is false, not Literal[1, true]"]),
        ("Order", "[]", ["$: is [], not Order"]),
        ("Order", "{}", ["$.id: is missing; Order needs it (int)"]),
        ("Order", '{"id": 1, "ids": 2}', ["$.ids: Order has no such field; did you mean id?"]),
        (
            "shop.Line",
            '{"sku": "a", "xyz": 2}',
            ["$.xyz: shop.Line has no such field; it has sku"],
        ),
        (
            "Order",
            '{"id": 1, "lines": [{"sku": "a"}, {}], "state": "lost", "parent": {"id": "x"}}',
            [
                "$.lines[1].sku: is missing; shop.Line needs it (str)",
                '$.state: is "lost", not Literal["open", "paid", 3]',
                '$.parent.id: is "x", not int',
            ],
        ),
        ("Any", "nope", ["it is no JSON: Expecting value, line 1, column 1"]),
        ("Any", "", ["it is no JSON: Expecting value, line 1, column 1"]),
        ("Any", "[NaN]", ["it is no JSON: NaN is no number there"]),
        ("Any", "[-Infinity]", ["it is no JSON: -Infinity is no number there"]),
        ("Any", '"\\ud800"', ["it holds halves of surrogate pairs, which no text may"]),
        ("Any", "[" * 101 + "]" * 101, ["it is nested deeper than 100"]),
        ("Any", "[" * 30_000 + "]" * 30_000, ["it is nested deeper than 100"]),
        ("Any", f'"{"é" * (PAYLOAD_LIMIT // 2)}"', ["it has 65538 bytes; at most 65536 are allowed"]),
        ("list[int]", "[" + "null," * 1_000 + "null]", [f"$[{n}]: is null, not int" for n in range(20)]),
    ],
)
def test_what_does_not_fit_is_named_by_its_path(type_text: str, payload: str, faults: list[str]):
    assert payload_faults(SHOP, type_text, payload) == faults


def test_the_largest_payload_is_allowed():
    assert payload_faults(SHOP, "str", f'"{"x" * (PAYLOAD_LIMIT - 2)}"') == []


def test_a_number_of_thousands_of_digits_is_none():
    [fault] = payload_faults(SHOP, "int", "1" * 10_000)
    assert fault.startswith("it is no JSON: ")


def test_alternatives_inside_alternatives_take_time_by_the_size_of_the_payload():
    records = tuple(DataType(name, (DataField("next", "A | B | C"), DataField("x", "int"))) for name in "ABC")
    payload = "1"
    for _ in range(98):
        payload = f'{{"next": {payload}, "x": 1}}'
    module = Module("m", types=records)
    [fault] = payload_faults(module, "A | B", payload)
    assert fault.endswith("not A | B")
    assert cpu_s(lambda: payload_faults(module, "A | B", payload)) < 1


def test_types_as_trees():
    leaf = Type("int", ())
    assert parse_type("int") == leaf
    assert parse_type("dict[str, list[int]] | None") == Type(
        "|", (Type("dict", (Type("str", ()), Type("list", (leaf,)))), Type("None", ()))
    )
    assert parse_type("Optional[int]") == Type("|", (leaf, Type("None", ())))
    assert parse_type('Literal["a, b", 1]') == Type("Literal", (Type('"a, b"', ()), Type("1", ())))


@given(TYPES, JSON_VALUES)
def test_any_type_takes_a_stand_on_any_value(type_text: str, value: object):
    canonical = canonical_type(type_text)
    assert canonical is not None
    assert str(parse_type(canonical)) in {canonical, canonical.replace("Union", "")}
    for fault in payload_faults(SHOP, canonical, canonical_json(value)):
        assert fault.startswith("$")


@pytest.mark.parametrize(
    ("type_text", "payload", "example"),
    [
        ("datetime.datetime", '"soon"', "2026-03-01T08:00:00Z"),
        ("datetime.datetime", "1795219200", "2026-03-01T08:00:00Z"),
        ("datetime.date", '"2026-02-30"', "2026-03-01"),
        ("datetime.time", '"25:00"', "08:00:00"),
        ("uuid.UUID", '"7"', "12345678-1234-5678-1234-567812345678"),
        ("decimal.Decimal", '"a lot"', "12.50"),
        ("decimal.Decimal", "[1]", "12.50"),
        ("dict[str, datetime.date]", '{"a": null}', "2026-03-01"),
    ],
)
def test_what_is_no_text_of_its_class_is_refused_with_an_example(type_text: str, payload: str, example: str):
    (fault,) = payload_faults(SHOP, type_text, payload)
    assert fault.startswith("$")
    assert fault.endswith(f'like "{example}"')


@pytest.mark.parametrize("payload", ["1e999", '{"a":[-1e999]}', '"\\ud800"', '{"\\udfff":1}'])
def test_what_is_taken_has_a_canonical_text(payload: str):
    """These had none, though they were read: an internal error in a template's payload."""
    with pytest.raises(NoPayload, match=r"too large a number|surrogate"):
        read_payload(payload)
    assert payload_faults(Module("m", ()), "Any", payload)


def test_hints_are_given_for_a_few_fields_of_hundreds() -> None:
    """Each takes milliseconds, and the loop of a controller waits for all of them."""
    order = DataType("Order", tuple(DataField(f"quantity_{number:03}", "int", True) for number in range(500)))
    unknown = canonical_json({f"quantitie_{number:03}": 1 for number in range(1_000)})
    faults = payload_faults(Module("shop", types=(order,)), "Order", unknown)
    assert ["did you mean quantity_" in each for each in faults] == [True] * 5 + [False] * 15
    # Of alternatives that are tried nobody reads the faults.
    faults = payload_faults(Module("shop", types=(order,)), "tuple[Order | int, Order]", f"[{unknown}, {unknown}]")
    assert ["did you mean quantity_" in each for each in faults] == [False] + [True] * 5 + [False] * 14
