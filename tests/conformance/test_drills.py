"""Who may hold a drill, as PostgreSQL decides it. (The virtual worlds have nobody to drill.)"""

import asyncio
from collections.abc import AsyncIterator

import pytest

from cronring.controller.ports.drills import Drill
from cronring.controller.ports.store import ControllerInfo
from cronring.controller.store.drills import PostgresDrills
from cronring.controller.store.pool import Database
from cronring.controller.store.reads import PostgresReads
from cronring.controller.store.store import PostgresStore

LEASE_MS = 5_000
LOST_AFTER_MS = 8_750


@pytest.fixture(params=["postgres18", "postgres15"])
def postgres_name(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    database = await Database.open(database_url, "cronring test", connections=4)
    yield database
    await database.close()


async def lease(database: Database, *ids: str, draining: bool = False, lease_ms: int = LEASE_MS) -> None:
    for each in ids:
        info = ControllerInfo(each, f"{each}:1", "", 1, "1")
        await PostgresStore(database).renew_lease(info, draining, lease_ms, (), LOST_AFTER_MS)


async def in_drill(database: Database) -> list[str]:
    rows = await PostgresReads(database, LOST_AFTER_MS).list_controllers()
    return [row.controller_id for row in rows if row.drill_until is not None]


async def test_one_that_others_can_stand_in_for_is_noted_and_renewals_leave_it_so(database: Database) -> None:
    await lease(database, "c1", "c2", "c3")
    assert await PostgresDrills(database).hold_drill("c1", 10_000, False) == Drill(True, 2, None)
    await lease(database, "c1", "c2", "c3")
    rows = await PostgresReads(database, LOST_AFTER_MS).list_controllers()
    now = await PostgresReads(database, LOST_AFTER_MS).database_now()
    until = rows[0].drill_until
    assert until is not None
    assert 5_000_000 < until - now <= 10_000_000
    assert await in_drill(database) == ["c1"]


async def test_its_time_ends_by_itself_and_may_end_early(database: Database) -> None:
    await lease(database, "c1", "c2")
    drills = PostgresDrills(database)
    await drills.hold_drill("c1", 1, False)
    await asyncio.sleep(0.05)  # PostgreSQL's clock, not ours, is what is asked for here
    assert await in_drill(database) == []
    assert (await drills.hold_drill("c1", 60_000, False)).noted
    await drills.claim_again("c1")
    assert await in_drill(database) == []


async def test_of_two_the_second_is_refused_until_the_first_has_ended(database: Database) -> None:
    await lease(database, "c1", "c2", "c3")
    drills = PostgresDrills(database)
    await drills.hold_drill("c2", 60_000, False)
    assert await drills.hold_drill("c1", 1_000, False) == Drill(False, 1, "c2")
    assert (await drills.hold_drill("c1", 60_000, True)).noted
    await drills.claim_again("c2")
    assert await drills.hold_drill("c3", 1_000, False) == Drill(False, 1, "c1")


async def test_of_many_who_ask_at_once_one_may(database: Database) -> None:
    names = [f"c{number}" for number in range(4)]
    await lease(database, *names)
    answers = await asyncio.gather(*(PostgresDrills(database).hold_drill(each, 60_000, False) for each in names))
    assert sum(answer.noted for answer in answers) == 1
    assert len(await in_drill(database)) == 1


@pytest.mark.parametrize("other", ["alone", "draining", "expired"])
async def test_where_nobody_could_take_over_it_is_refused_unless_forced(database: Database, other: str) -> None:
    await lease(database, "c1")
    if other != "alone":
        await lease(database, "c2", draining=other == "draining", lease_ms=LEASE_MS if other == "draining" else 0)
    drills = PostgresDrills(database)
    assert await drills.hold_drill("c1", 1_000, False) == Drill(False, 0, None)
    assert await in_drill(database) == []
    assert await drills.hold_drill("c1", 1_000, True) == Drill(True, 0, None)


async def test_one_that_has_no_row_is_not_noted(database: Database) -> None:
    await lease(database, "c2")
    assert await PostgresDrills(database).hold_drill("c1", 1_000, True) == Drill(False, 1, None)
