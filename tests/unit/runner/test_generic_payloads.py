"""Generic records with their arguments filled in, and classes that no payload can be made of."""

import json
import sys
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Generic, TypedDict, TypeVar

import pytest

from cronring.child.buildable import unbuildable
from cronring.child.describe_types import TypeDump
from cronring.child.payloads import PayloadError, Payloads
from cronring.runner.describe import read_program
from cronring.runner.modules import InvalidFile, load_module
from cronring.schema.declaration import read_declaration
from cronring.schema.module import Module
from cronring.schema.payload import payload_faults
from cronring.schema.text import parse_module, print_module

T = TypeVar("T")
U = TypeVar("U", bound=int)


@dataclass
class Item:
    id: int


@dataclass
class Page(Generic[T]):
    items: list[T]
    first: T | None = None
    more: "Page[T] | None" = None


@dataclass
class Named(Page[Item], Generic[T]):
    """Its T is none of Page's."""

    name: T = field(kw_only=True)


@dataclass
class Bounded(Generic[U]):
    value: U


class Pair(TypedDict, Generic[T]):
    left: T
    right: list[T]


@dataclass
class Endless(Generic[T]):
    inner: "Endless[list[T]] | None" = None


class Money:
    """What no JSON can become."""


@pytest.mark.parametrize(
    ("annotation", "payload", "made"),
    [
        (Page[int], {"items": [1]}, Page([1])),
        (Page[Item], {"items": [{"id": 1}], "first": {"id": 2}}, Page([Item(1)], Item(2))),
        (Page[Item], {"items": [], "more": {"items": [{"id": 1}]}}, Page([], None, Page([Item(1)]))),
        (list[Page[Page[int]]], [{"items": [{"items": [1]}]}], [Page([Page([1])])]),
        (Named[str], {"items": [{"id": 1}], "name": "a"}, Named([Item(1)], name="a")),
        (Bounded, {"value": 3}, Bounded(3)),
        (Pair[Item], {"left": {"id": 1}, "right": [{"id": 2}]}, {"left": Item(1), "right": [Item(2)]}),
        (Page, {"items": [{"any": 1}]}, Page([{"any": 1}])),
        (Endless[int], {"inner": {"inner": None}}, Endless(Endless())),
    ],
)
def test_runs_get_generic_records_filled_in(annotation: Any, payload: object, made: object) -> None:
    assert Payloads(annotation, {}).read(json.dumps(payload)) == made


@pytest.mark.parametrize(
    ("annotation", "payload", "path"),
    [
        (Page[int], {"items": ["x"]}, "$.items[0]"),
        (Page[Item], {"items": [{"idd": 1}]}, "$.items[0].id"),
        (Page[int], {"items": [], "more": {"items": ["x"]}}, "$.more.items[0]"),
        (Named[str], {"items": [], "name": 3}, "$.name"),
        (Bounded, {"value": "x"}, "$.value"),
        (Pair[int], {"left": 1, "right": ["x"]}, "$.right[0]"),
    ],
)
def test_what_does_not_fit_is_refused_before_the_run_and_in_it(annotation: Any, payload: object, path: str) -> None:
    with pytest.raises(PayloadError) as caught:
        Payloads(annotation, {}).read(json.dumps(payload))
    assert path in str(caught.value)
    types = TypeDump(__name__)
    text = types.text(annotation)
    module = read_declaration(
        {
            "version": 1, "module": "m", "file": "m.py", "types": list(types.records.values()),
            "verbs": [{"name": "v", "line": 1, "params": [{"name": "p", "annotation": "x", "type": text}]}],
        }
    )  # fmt: skip
    assert isinstance(module, Module), module
    assert parse_module(print_module(module)).types == module.types
    (fault, *_) = payload_faults(module, text, json.dumps(payload))
    assert fault.startswith(path)


def test_a_generic_record_is_described_with_its_arguments() -> None:
    types = TypeDump(__name__)
    assert types.text(Page[Item]) == "Page[Item]"
    fields = {name: {f["name"]: f["type"] for f in record["fields"]} for name, record in types.records.items()}
    assert fields["Page[Item]"] == {"items": "list[Item]", "first": "Item | None", "more": "Page[Item] | None"}
    assert types.text(Endless[int]) == "Endless[int]"
    assert len(types.records) < 50


@pytest.mark.parametrize(
    ("annotation", "found"),
    [
        (Money, ("", f"{__name__}.Money")),
        (list[Money], ("[]", f"{__name__}.Money")),
        (Page[Money], (".items[]", f"{__name__}.Money")),
        (dict[str, timedelta], (".*", "datetime.timedelta")),
        (bytes | None, ("", "bytes")),
        (Page[Page[Decimal]], None),
        (Path, None),
        (Any, None),
        (dict, None),
        (object, None),
        (Endless[int], None),
        ("Unknown", None),
    ],
)
def test_what_can_not_be_made_of_json(annotation: Any, found: tuple[str, str] | None) -> None:
    assert unbuildable(annotation) == found


SOURCE = b"""
from __future__ import annotations
from dataclasses import dataclass
from cronring import Context, verb

class Money: ...

@dataclass
class Order:
    price: Money

@verb
def pay(ctx: Context, order: Order) -> None: ...

@verb
def tip(money: Money) -> Money: ...

@verb
def ring(ctx: Context, anything: dict) -> Money: ...
"""


def test_check_refuses_what_a_run_could_not_be_given(tmp_path: Path) -> None:
    file = tmp_path / "bad.py"
    file.write_bytes(SOURCE)
    with pytest.raises(InvalidFile) as caught:
        load_module(read_program(file, sys.executable, "default"))
    problems = caught.value.problems
    assert [(problem.line, problem.verb) for problem in problems] == [(12, "pay"), (15, "tip")]
    assert "its parameter order (order.price) is a bad.Money, which can't be made" in problems[0].message
    assert "its parameter money is a bad.Money" in problems[1].message
    assert "use a dataclass, a TypedDict, an enum" in problems[0].remedy
    assert "Any" in problems[0].remedy
