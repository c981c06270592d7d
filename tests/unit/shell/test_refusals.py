"""Refusals are counted in memory, and written as a bounded number of rows: all are told, whoever floods."""

from collections import Counter
from collections.abc import Sequence

import pytest

from cronring.controller.errors import StoreUnavailable
from cronring.controller.ports.audit_chain import NotedRefusal
from cronring.controller.ports.caller import calling
from cronring.controller.runtime.refusals import GROUPS_MAX, OTHERS, WHY_LENGTH_MAX, RefusalLog
from cronring.schema.identity import Kind, Principal
from tests.unit.shell.gateway_parts import Log

PAUSE = "/cronring.v1.Jobs/PauseJob"


class Desk:
    """A clock that is set, and a PostgreSQL that may be away. `rows`: those written, with the second."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.away = False
        self.rows: list[tuple[float, NotedRefusal]] = []
        self.counted: Counter[str] = Counter()
        self.log = Log()
        self.refusals = RefusalLog(lambda what, count: self.counted.update({what: count}), lambda: self.now_s)

    async def write(self, rows: Sequence[NotedRefusal]) -> None:
        if self.away:
            raise StoreUnavailable("away")
        self.rows += [(self.now_s, row) for row in rows]

    async def round(self) -> None:
        """What go_on does each second."""
        await self.refusals._write(self.write, self.refusals._due())

    def refuse(self, name: str, host: str = "10.0.0.1", method: str = PAUSE, what: str = "forbidden") -> None:
        with calling(Principal(Kind.TOKEN, name), method, f"ipv4:{host}:{1_000 + len(self.rows)}"):
            self.refusals(what, why=f"{name} may not")

    @property
    def told(self) -> int:
        return sum(row.times for _, row in self.rows)


@pytest.fixture
def desk() -> Desk:
    return Desk()


async def test_a_refusal_is_told_within_a_second_and_those_like_it_once_a_minute(desk: Desk) -> None:
    for _ in range(3):
        desk.refuse("eve")
    desk.now_s = 0.5
    await desk.round()
    (row,) = [row for _, row in desk.rows]
    assert row == NotedRefusal(500, "PERMISSION_DENIED", 3, "token:eve", PAUSE, "10.0.0.1", "eve may not")
    for second in range(1, 200):
        desk.now_s = float(second)
        desk.refuse("eve")
        await desk.round()
    assert [round(at) for at, _ in desk.rows] == [0, 61, 121, 181]
    assert desk.told + desk.refusals.gauges()["audit_log_refusals_waiting"] == 202
    assert desk.counted == {"forbidden": 202}


async def test_who_what_why_and_from_where_are_told_apart(desk: Desk) -> None:
    for name, host, method, what in (
        ("eve", "10.0.0.1", PAUSE, "forbidden"), ("mal", "10.0.0.1", PAUSE, "forbidden"),
        ("eve", "10.0.0.2", PAUSE, "forbidden"), ("eve", "10.0.0.1", "/x", "forbidden"),
        ("eve", "10.0.0.1", PAUSE, "unauthenticated"),
    ):  # fmt: skip
        desk.refuse(name, host, method, what)
    await desk.round()
    assert len({row[1:6] for _, row in desk.rows}) == 5


async def test_a_flood_costs_so_many_rows_a_minute_and_every_call_is_counted(desk: Desk) -> None:
    calls = 0
    for second in range(300):
        desk.now_s = float(second)
        for number in range(40):
            desk.refuse(f"eve{second}-{number}", what=("forbidden", "unauthenticated")[number % 2])
            calls += 1
        await desk.round()
    for minute in range(5):
        written = [row for at, row in desk.rows if minute * 60 <= at < minute * 60 + 60]
        assert len(written) <= GROUPS_MAX + 2
    assert {row.principal for _, row in desk.rows if row.method == OTHERS} == {"local:nobody"}
    await desk.refusals.leave(desk.write, desk.log)  # type: ignore[arg-type]  # it only warns
    assert desk.told == calls
    assert desk.refusals.counters() == {"audit_log_refusals_dropped": 0}


async def test_while_postgresql_is_away_they_are_kept_and_then_told_once(desk: Desk) -> None:
    desk.away = True
    for second in range(100):
        desk.now_s = float(second)
        desk.refuse("eve")
        with pytest.raises(StoreUnavailable):
            await desk.round()
    desk.away = False
    await desk.round()
    ((_, row),) = desk.rows
    assert (row.times, row.age_ms) == (100, 99_000)


async def test_what_is_left_when_it_leaves_is_written_or_said_to_be_lost(desk: Desk) -> None:
    desk.refuse("eve")
    await desk.round()
    desk.refuse("eve")
    desk.away = True
    await desk.refusals.leave(desk.write, desk.log)  # type: ignore[arg-type]  # it only warns
    assert desk.refusals.counters() == {"audit_log_refusals_dropped": 1}
    assert desk.log.lines == [("warning", "refusals_dropped", {"refusals": 1, "reason": "away"})]


async def test_what_strangers_wrote_is_short_and_printed(desk: Desk) -> None:
    with calling(Principal(Kind.TOKEN, "eve"), PAUSE, "ipv6:%5B::1%5D:7"):
        desk.refusals("forbidden", why="a\x1b[2J\nb\0" + "c" * 1_000)
    await desk.round()
    ((_, row),) = desk.rows
    assert row.why.startswith("a\\x1b[2J\\nb\\x00ccc")
    assert (len(row.why), row.why.isprintable(), row.origin) == (WHY_LENGTH_MAX, True, "::1")


async def test_invalid_requests_are_counted_and_not_on_record(desk: Desk) -> None:
    desk.refusals("request")
    desk.refusals("hello", 2)
    await desk.round()
    assert (desk.rows, desk.counted) == ([], {"request": 1, "hello": 2})
