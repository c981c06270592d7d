"""What a handler is told, and what it may say, through real children."""

import sys
from pathlib import Path
from typing import Any

import pytest

from cronring.schema.execution import Outcome, ScheduleKind
from tests.integration.runner.conftest import OpenStage

TOLD = """
from cronring import Context, every, verb

def tell(ctx):
    print(ctx.missed, ctx.previous_tick, ctx.previous_success, ctx.trigger, ctx.timezone, ctx.local_tick.utcoffset(),
          ctx.payload, sep="|")

@every("5m")
async def told(ctx: Context) -> None:
    tell(ctx)

@every("5m")
def told_sync(ctx: Context) -> None:
    tell(ctx)

@every("5m")
async def moves(ctx: Context) -> None:
    ctx.next_in("90s")

@every("5m")
def moves_sync(ctx: Context) -> None:
    ctx.next_in("90s")

@every("5m")
async def moves_and_fails(ctx: Context) -> None:
    ctx.next_in("1h")
    raise ValueError("no")

@every("5m")
def moves_and_fails_sync(ctx: Context) -> None:
    ctx.next_in("1h")
    raise ValueError("no")
"""


@pytest.mark.parametrize("verb", ["told", "told_sync"])
async def test_a_handler_is_told_what_it_missed(open_stage: OpenStage, verb: str) -> None:
    stage = await open_stage(TOLD)
    plain = await stage.run(verb)
    assert plain.output == "0|None|None|schedule|UTC|0:00:00|None\n"
    told = await stage.run(
        verb,
        missed=3,
        previous_tick_us=1_000_000,
        previous_success_us=2_000_000,
        timezone="Asia/Kolkata",
        payload_json='{"a":[1,"é"]}',
    )
    assert told.output == (
        "3|1970-01-01 00:00:01+00:00|1970-01-01 00:00:02+00:00|schedule|Asia/Kolkata|5:30:00|{'a': [1, 'é']}\n"
    )


async def test_a_handler_moves_its_next_run(open_stage: OpenStage) -> None:
    stage = await open_stage(TOLD)
    verbs = ["moves", "told", "moves_sync", "moves_and_fails", "moves_and_fails_sync", "told_sync"]
    results = await stage.ended(*stage.start(*verbs, schedule_kind=ScheduleKind.INTERVAL))
    assert [(r.outcome, r.next_in_ms) for r in results] == [
        (Outcome.COMPLETED, 90_000),
        (Outcome.COMPLETED, 0),
        (Outcome.COMPLETED, 90_000),
        (Outcome.FAILED, 3_600_000),
        (Outcome.FAILED, 3_600_000),
        (Outcome.COMPLETED, 0),
    ]
    refused = await stage.run("moves")
    assert (refused.outcome, refused.error_type, refused.next_in_ms) == (Outcome.FAILED, "RuntimeError", 0)
    assert "only jobs declared by @every may call ctx.next_in" in refused.error_message


RAISES = """
from cronring import every

class Own(ConnectionRefusedError): ...

@every("5m")
async def fails() -> None:
    raise Own("no")

@every("5m")
def fails_sync() -> None:
    raise Own("no")
"""


async def test_a_failure_names_the_classes_that_it_is_a_kind_of(open_stage: OpenStage) -> None:
    stage = await open_stage(RAISES)
    for result in await stage.ended(*stage.start("fails", "fails_sync")):
        assert result.error_type == "mod.Own"
        bases = ("ConnectionRefusedError", "ConnectionError", "OSError", "Exception", "BaseException")
        assert result.error_bases == bases


PAYLOADS = """
import dataclasses, datetime, decimal, enum
from typing import Any, Dict, List, Literal, Optional, Tuple, TypedDict, Union
from cronring import Context, manual, verb

class Kind(enum.Enum):
    BIG = "big"

class Address(TypedDict, total=False):
    street: str

@dataclasses.dataclass
class Line:
    sku: str
    count: int = 1
    parent: Optional["Line"] = None

@dataclasses.dataclass
class Order:
    id: int
    lines: List[Line] = dataclasses.field(default_factory=list)
    address: Optional[Address] = None
    state: Literal["open", "paid"] = "open"
    kind: Optional[Kind] = None
    at: Optional[datetime.datetime] = None
    price: Optional[decimal.Decimal] = None
    pair: Tuple[int, str] = (0, "")
    by: Dict[int, float] = dataclasses.field(default_factory=dict)
    any: Any = None

    def __post_init__(self):
        if self.id < 0:
            raise ValueError("an id is not negative")

@manual
async def take(ctx: Context, order: Order) -> None:
    print(order)

@manual
def take_sync(order: Order, ctx: Context) -> None:
    print(ctx.trigger, order)

@manual
async def keyword(*, order: Order) -> None:
    print(order)

@manual
async def default(ctx: Context, count: int = 3) -> None:
    print(count)

@verb
def either(it: Union[int, List[Line], Line, None]) -> None:
    print(it)
"""
PLAIN = "address=None, state='open', kind=None, at=None, price=None, pair=(0, ''), by={}, any=None)"


@pytest.mark.parametrize(
    ("verb", "payload", "printed"),
    [
        ("take", '{"id":7}', f"Order(id=7, lines=[], {PLAIN}"),
        ("take_sync", '{"id":7}', f"schedule Order(id=7, lines=[], {PLAIN}"),
        (
            "keyword",
            '{"id":7,"lines":[{"sku":"a","parent":{"sku":"b","count":2}}],"address":{"street":"x"},"state":"paid",'
            '"kind":"big","at":"2026-01-01T00:00:00Z","price":"1.50","pair":[1,"a"],"by":{"1":2.5},"any":[{}]}',
            "Order(id=7, lines=[Line(sku='a', count=1, parent=Line(sku='b', count=2, parent=None))], "
            "address={'street': 'x'}, state='paid', kind=<Kind.BIG: 'big'>, "
            "at=datetime.datetime(2026, 1, 1, 0, 0, tzinfo=datetime.timezone.utc), price=Decimal('1.50'), "
            "pair=(1, 'a'), by={1: 2.5}, any=[{}])",
        ),
        ("default", "", "3"),
        ("default", "5", "5"),
        ("either", "5", "5"),
        ("either", '{"sku":"a"}', "Line(sku='a', count=1, parent=None)"),
        ("either", '[{"sku":"a"}]', "[Line(sku='a', count=1, parent=None)]"),
        ("either", "null", "None"),
        ("either", "", "None"),
    ],
)
async def test_a_payload_becomes_what_the_verb_asks_for(
    open_stage: OpenStage, verb: str, payload: str, printed: str
) -> None:
    stage = await open_stage(PAYLOADS)
    result = await stage.run(verb, payload_json=payload)
    assert result.error_message == ""
    assert result.output == f"{printed}\n"


@pytest.mark.parametrize(
    ("verb", "payload", "message"),
    [
        ("take", "", "it needs a payload for its parameter order"),
        ("take", "[]", "$: is [], not Order"),
        ("take", "{}", "$.id: is missing"),
        ("take", '{"id":"7"}', '$.id: is "7", not int'),
        ("take", '{"id":true}', "$.id: is true, not int"),
        ("take", '{"id":1,"idd":2}', "$.idd: Order has no such field"),
        ("take", '{"id":1,"lines":[{"sku":"a"},{"sku":1}]}', "$.lines[1].sku: is 1, not str"),
        ("take", '{"id":1,"state":"lost"}', "$.state: is \"lost\", not one of 'open', 'paid'"),
        ("take", '{"id":1,"kind":"small"}', "$.kind: ValueError: 'small' is not a valid Kind"),
        ("take", '{"id":1,"at":"soon"}', "$.at: ValueError: Invalid isoformat string"),
        ("take", '{"id":1,"pair":[1]}', "$.pair: is [1], not a list of 2"),
        ("take", '{"id":1,"by":{"x":1}}', "$.by: the key 'x' is no int"),
        ("take", '{"id":-1}', "$: ValueError: an id is not negative"),
    ],
)
async def test_what_a_verb_does_not_ask_for_fails_the_run(
    open_stage: OpenStage, verb: str, payload: str, message: str
) -> None:
    stage = await open_stage(PAYLOADS)
    result = await stage.run(verb, payload_json=payload)
    assert (result.outcome, result.error_type) == (Outcome.FAILED, "PayloadError")
    assert result.error_message.startswith(message)


def others() -> list[str]:
    """Other interpreters, where there are some: SDK and child must work with any from 3.9 on."""
    homes = sorted(Path.home().glob(".pyenv/versions/3.*/bin/python"))
    newest = {home.parts[-3].rpartition(".")[0]: str(home) for home in homes}
    mine = f"{sys.version_info.major}.{sys.version_info.minor}"
    return [python for minor, python in newest.items() if minor != mine and int(minor.partition(".")[2]) >= 9]


@pytest.mark.parametrize("python", others())
async def test_with_the_authors_own_interpreter(open_stage: OpenStage, python: str) -> None:
    stage = await open_stage(PAYLOADS + TOLD, python=python)
    told: dict[str, Any] = {"timezone": "Europe/Berlin", "missed": 2, "schedule_kind": ScheduleKind.INTERVAL}
    results = await stage.ended(
        *stage.start("take", "keyword", payload_json='{"id":7,"lines":[{"sku":"a"}],"at":"2026-01-01T00:00:00Z"}'),
        *stage.start("told", "moves", "moves_sync", **told),
    )
    assert [result.error_message for result in results] == [""] * 5
    assert "lines=[Line(sku='a', count=1, parent=None)]" in results[0].output
    assert "|Europe/Berlin|" in results[2].output
    assert [result.next_in_ms for result in results[3:]] == [90_000, 90_000]
