"""cron_fence and cron_fence_commit: an author's transaction commits only while its execution is the one that runs."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from cronring.controller.core.model import Execution
from cronring.controller.store.connect import Connection, connect
from cronring.controller.store.pool import Database
from cronring.schema.execution import Outcome
from tests.conformance.harness import PostgresScene, World
from tests.support.databases import PostgresServer
from tests.support.locks import until_locked_out
from tests.support.waiting import TIMEOUT_S

pytestmark = pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])
LOST = asyncpg.ObjectNotInPrerequisiteStateError


class Book:
    """A table of an author's, and a role that may see no table of ours."""

    def __init__(self, world: World, scene: Connection, author: Connection, execution: Execution) -> None:
        self.world = world
        self.scene = scene
        self.author = author
        self.execution = execution

    async def holds(self, fence: int | None = None, key: str = "billing.a", commit: bool = False) -> bool:
        function = "cron_fence_commit" if commit else "cron_fence"
        fence = self.execution.execution_id if fence is None else fence
        answer: bool = await self.author.fetchval(f"SELECT {function}($1, $2)", key, fence)
        return answer

    async def write(self) -> None:
        await self.author.execute("INSERT INTO invoices VALUES (1)")

    async def written(self) -> int:
        count: int = await self.scene.fetchval("SELECT count(*) FROM invoices")
        return count

    async def end(self, outcome: Outcome = Outcome.LOST) -> None:
        assert (await self.world.end(self.execution, outcome)).ended


@pytest.fixture
async def book(postgres: PostgresServer, database_url: str) -> AsyncIterator[Book]:
    database = await Database.open(database_url, "cronring test")
    scene, author = await connect(database_url, "scene"), await connect(database_url, "author")
    role = f"author_{database_url.rpartition('/')[2].partition('?')[0]}"
    await scene.execute(
        f'CREATE ROLE "{role}"; CREATE TABLE invoices (month integer); GRANT ALL ON invoices TO "{role}"'
    )
    await scene.execute(f'GRANT USAGE ON SCHEMA cronring TO "{role}"')
    await scene.execute(f'GRANT EXECUTE ON FUNCTION cron_fence, cron_fence_commit TO "{role}"')
    await author.execute(f'SET ROLE "{role}"')
    world = World(PostgresScene(database, scene))
    (execution,) = await world.running("c1", "a")
    yield Book(world, scene, author, execution)
    await author.close()
    await scene.execute(f'DROP OWNED BY "{role}"; DROP ROLE "{role}"')
    await scene.close()
    await database.close()


async def test_it_holds_while_it_runs_for_its_own_job_and_no_longer(book: Book) -> None:
    assert await book.holds()
    assert not await book.holds(key="billing.b")
    assert not await book.holds(fence=book.execution.execution_id + 1)
    assert not await book.holds(fence=0)
    await book.end(Outcome.COMPLETED)
    assert not await book.holds()
    assert not await book.holds(commit=True)


async def test_authors_see_no_table_of_ours(book: Book) -> None:
    for statement in (
        "SELECT * FROM cron_executions",
        "INSERT INTO cron_fence_checks (job_key, fence) VALUES ('x', 1)",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await book.author.execute(statement)


async def test_a_holders_transaction_commits_and_leaves_nothing_behind(book: Book) -> None:
    async with book.author.transaction():
        assert await book.holds(commit=True)
        await book.write()
    assert await book.written() == 1
    assert await book.scene.fetchval("SELECT count(*) FROM cron_fence_checks") == 0
    await book.end(Outcome.COMPLETED)


async def test_a_zombies_transaction_does_not_commit(book: Book) -> None:
    """It asked while it still was the holder, and has been declared lost since."""
    transaction = book.author.transaction()
    await transaction.start()
    assert await book.holds(commit=True)
    await book.write()
    await book.end()
    with pytest.raises(LOST, match=r"no longer holds .* it has been ended, so nothing is committed"):
        await transaction.commit()
    assert await book.written() == 0


async def test_a_transaction_that_idles_keeps_nobody_from_ending_executions(book: Book) -> None:
    transaction = book.author.transaction()
    await transaction.start()
    assert await book.holds(commit=True)
    async with asyncio.timeout(TIMEOUT_S):
        await book.end()
    await transaction.rollback()


async def test_who_ends_it_waits_for_a_commit_under_way(book: Book) -> None:
    """SET CONSTRAINTS asks what the commit asks, and the row stays locked until then: the end comes after."""
    transaction = book.author.transaction()
    await transaction.start()
    assert await book.holds(commit=True)
    await book.write()
    await book.author.execute("SET CONSTRAINTS ALL IMMEDIATE")
    ending = asyncio.ensure_future(book.end())
    await until_locked_out(book.scene)
    assert not ending.done()
    await transaction.commit()
    await ending
    assert await book.written() == 1
    assert not await book.holds()


async def test_an_adopted_execution_still_is_the_holder(book: Book) -> None:
    transaction = book.author.transaction()
    await transaction.start()
    assert await book.holds(commit=True)
    await book.world.controller("c2")
    await book.world.store.adopt_executions("c2", ("c1",))
    await book.write()
    await transaction.commit()
    assert await book.written() == 1


async def test_in_a_snapshot_what_has_changed_since_is_refused(book: Book) -> None:
    transaction = book.author.transaction(isolation="repeatable_read")
    await transaction.start()
    assert await book.holds(commit=True)
    await book.write()
    await book.end()
    with pytest.raises(asyncpg.PostgresError):
        await transaction.commit()
    assert await book.written() == 0
