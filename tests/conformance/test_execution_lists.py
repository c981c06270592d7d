"""Lists of executions by filters, sorts and pages, held against what Python picks from the same rows."""

import itertools
import random
from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest

from cronring.controller.errors import Conflict, NotFound
from cronring.controller.ports.reads import Cursor, ExecutionFilter, ExecutionSort, JobFilter, JobSort
from cronring.controller.store import execution_lists
from cronring.controller.store.connect import Connection, connect
from cronring.controller.store.execution_lists import ExecutionLists
from cronring.controller.store.pool import Database
from cronring.controller.store.reads import PostgresReads
from cronring.schema.module import Module, Verb
from tests.conformance.harness import LOST_AFTER_MS, SECOND, TIMEOUT_MS, PostgresScene, World

pytestmark = pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])
FEW = 7  # executions that one answer looks at
ROWS = 120
OUTCOMES = (None, "completed", "completed", "completed", "failed", "timed_out", "lost")
JOBS = {
    "a.x": {"team": "red"}, "a.y": {"team": "red", "tier": "1"}, "b.x": {}, "staging/a.x": {"team": "blue"},
}  # fmt: skip
INSERT = """
INSERT INTO cron_executions (job_id, deployment_id, tick, run_at, claimed_at, started_at, ended_at, outcome, attempt,
                             controller_id, runner_id, hard_deadline)
SELECT j.id, j.deployment_id, t.tick, t.tick, t.claimed, t.started, t.ended, $5, $6, 'c1', $7, t.tick
FROM cron_jobs j, LATERAL (SELECT $2::timestamptz AS tick, $2 + $3 * interval '1 millisecond' AS claimed,
                                  $2 + $3 * interval '1 millisecond' AS started,
                                  CASE WHEN $5::text IS NOT NULL
                                       THEN $2 + ($3 + $4) * interval '1 millisecond' END AS ended) t
WHERE j.key = $1
RETURNING id
"""


class Row(NamedTuple):
    execution_id: int
    job: str
    tick: int
    attempt: int
    late_ms: int
    took_ms: int
    outcome: str | None
    runner: str


class Shelf(NamedTuple):
    """The rows of a database, and the lists of it."""

    rows: list[Row]
    lists: ExecutionLists
    whole: ExecutionLists
    reads: PostgresReads
    connection: Connection


@pytest.fixture
async def shelf(database_url: str) -> AsyncIterator[Shelf]:
    """Ticks of all jobs, mostly in order; backfilled ones among them, so that ids don't grow with ticks."""
    database = await Database.open(database_url, "cronring test")
    connection = await connect(database_url, "cronring test scene")
    world = World(PostgresScene(database, connection))
    await world.controller("c1")
    for name, namespace, verbs in (("a", "default", "xy"), ("b", "default", "x"), ("a", "staging", "x")):
        module = Module(name, tuple(Verb(verb, schedule="every 1h") for verb in verbs), namespace)
        await world.store.create_deployment(module, "a" * 64, 1, TIMEOUT_MS, True)
    for key, labels in JOBS.items():
        for label, value in labels.items():
            await connection.execute(
                "UPDATE cron_jobs SET labels = labels || jsonb_build_object($2::text, $3::text) WHERE key = $1",
                key, label, value,
            )  # fmt: skip
    draw = random.Random(7)
    now = await world.scene.now() // SECOND * SECOND
    rows = list[Row]()
    attempts = dict[tuple[str, int], int]()
    for number in range(ROWS):
        key = draw.choice(list(JOBS))
        tick = (
            now - (ROWS - number + (draw.randrange(3_000_000) if number % 9 == 0 else 0)) * 60 * SECOND // 2 // 60 * 60
        )
        tick -= tick % SECOND
        if number % 5 == 1 and rows[-1].job == key:
            tick = rows[-1].tick
        attempt = attempts[key, tick] = attempts.get((key, tick), 0) + 1
        late, took = draw.randrange(5), draw.randrange(5)
        outcome, runner = draw.choice(OUTCOMES), draw.choice(["r1", "r2", "r2", "r2"])
        execution_id = await connection.fetchval(INSERT, key, tick, late, took, outcome, attempt, runner)
        rows.append(Row(execution_id, key, tick, attempt, late, took, outcome, runner))
    await connection.execute("ANALYZE")
    reads = PostgresReads(database, LOST_AFTER_MS)
    yield Shelf(rows, ExecutionLists(database.fetch, FEW), ExecutionLists(database.fetch), reads, connection)
    await connection.close()
    await database.close()


def fits(row: Row, where: ExecutionFilter) -> bool:
    namespace = row.job.rpartition("/")[0] or "default"
    module, _, verb = row.job.rpartition("/")[2].partition(".")
    return all((
        where.job in {"", row.job}, where.namespace in {"", namespace}, where.module in {"", module},
        where.verb in {"", verb}, where.runner in {"", row.runner}, where.labels.items() <= JOBS[row.job].items(),
        not where.outcomes or (row.outcome or "running") in where.outcomes, row.execution_id > where.after_id,
        where.since is None or row.tick >= where.since, where.until is None or row.tick <= where.until,
        where.namespaces is None or namespace in where.namespaces,
    ))  # fmt: skip


def filters(rows: list[Row]) -> list[ExecutionFilter]:
    middle = sorted(row.tick for row in rows)[ROWS // 2]
    where = ExecutionFilter()
    return [
        where, *(where._replace(job=job) for job in JOBS), where._replace(module="a"), where._replace(module="none"),
        where._replace(labels={"team": "red"}), where._replace(labels={"team": "red", "tier": "1"}),
        where._replace(labels={"team": "red"}, module="a", verb="x"), where._replace(labels={"team": "green"}),
        where._replace(namespace="staging"), where._replace(verb="x"), where._replace(runner="r1"),
        where._replace(outcomes=("failed",)), where._replace(outcomes=("running",)),
        where._replace(outcomes=("failed", "timed_out", "lost", "running")),
        where._replace(outcomes=("completed", "running")),
        where._replace(outcomes=("failed", "lost"), module="a", runner="r2"),
        where._replace(outcomes=("failed", "lost"), runner="r1", namespace="default"),
        where._replace(job="a.x", namespace="staging"), where._replace(job="a.x", labels={"team": "red"}, runner="r1"),
        where._replace(since=middle), where._replace(until=middle), where._replace(since=middle, until=middle),
        where._replace(until=middle, module="a"), where._replace(until=middle, outcomes=("failed",)),
        where._replace(after_id=rows[ROWS // 2].execution_id), where._replace(job="a.y", after_id=rows[9].execution_id),
        where._replace(namespaces=("staging",)), where._replace(namespaces=("staging",), module="a"),
        where._replace(namespaces=("staging",), outcomes=("failed", "running")), where._replace(namespaces=()),
        where._replace(namespaces=("staging",), labels={"team": "red"}),
    ]  # fmt: skip


async def listed(lists: ExecutionLists, where: ExecutionFilter, sort: ExecutionSort, limit: int) -> list[int]:
    """Ids of all pages. No page is larger than asked for, and each goes on."""
    found: list[int] = []
    cursor: Cursor = ()
    seen: set[Cursor] = set()
    while True:
        page = await lists.page(where, sort, cursor, limit)
        assert len(page.rows) <= limit
        assert (page.looked_to is None) or page.next
        found += [row.execution_id for row in page.rows]
        if not page.next:
            return found
        assert page.next not in seen
        seen.add(page.next)
        cursor = page.next


async def test_every_filter_finds_what_fits_whatever_the_pages(shelf: Shelf) -> None:
    for where, limit in itertools.product(filters(shelf.rows), (1, 5, 1_000)):
        expected = sorted(row.execution_id for row in shelf.rows if fits(row, where))
        for lists in (shelf.lists, shelf.whole):
            found = await listed(lists, where, ExecutionSort.NEWEST, limit)
            assert sorted(found) == expected, (where, limit)


async def test_the_newest_come_first(shelf: Shelf) -> None:
    """By id; of one job or some, by tick."""
    of_all = await listed(shelf.lists, ExecutionFilter(outcomes=("failed", "running")), ExecutionSort.NEWEST, 3)
    assert of_all == sorted(of_all, reverse=True)
    place = {row.execution_id: (row.tick, row.attempt) for row in shelf.rows}
    for where in (ExecutionFilter(job="a.x"), ExecutionFilter(labels={"team": "red"}), ExecutionFilter(module="a")):
        places = [place[each] for each in await listed(shelf.lists, where, ExecutionSort.NEWEST, 3)]
        assert places == sorted(places, reverse=True)


async def test_what_took_longest_and_what_was_latest_come_first_page_by_page(shelf: Shelf) -> None:
    """Many are alike: pages neither leave out one of those, nor tell one twice."""
    for where, limit in itertools.product(filters(shelf.rows), (3, 1_000)):
        fit = [row for row in shelf.rows if fits(row, where)]
        slow = sorted(((row.took_ms, row.execution_id) for row in fit if row.outcome), reverse=True)
        late = sorted(((row.late_ms, row.execution_id) for row in fit), reverse=True)
        assert await listed(shelf.whole, where, ExecutionSort.SLOWEST, limit) == [each for _, each in slow], where
        assert await listed(shelf.whole, where, ExecutionSort.LATEST, limit) == [each for _, each in late], where


async def test_counts_are_those_of_the_lists_or_say_at_least(shelf: Shelf) -> None:
    for where in filters(shelf.rows):
        expected = sum(fits(row, where) for row in shelf.rows)
        assert await shelf.whole.count(where) == (expected, False), where
        some = await shelf.lists.count(where)
        assert some.executions <= expected
        assert some.at_least or some.executions == expected, where
    assert (await shelf.lists.count(ExecutionFilter())).at_least


async def test_what_would_have_to_look_through_too_many_is_refused(shelf: Shelf) -> None:
    for where in (ExecutionFilter(), ExecutionFilter(job="a.x"), ExecutionFilter(outcomes=("failed", "lost"))):
        with pytest.raises(Conflict, match="narrow it"):
            await shelf.lists.page(where, ExecutionSort.SLOWEST, (), 10)
    newest = max(row.tick for row in shelf.rows)
    assert await shelf.lists.page(ExecutionFilter(job="a.x", since=newest), ExecutionSort.SLOWEST, (), 10)
    with pytest.raises(NotFound):
        await shelf.lists.count(ExecutionFilter(job="a.none"))


async def test_more_jobs_than_are_gone_through_are_found_by_id(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution_lists, "JOBS_MAX", 1)
    for where in filters(shelf.rows):
        expected = sorted(row.execution_id for row in shelf.rows if fits(row, where))
        assert sorted(await listed(shelf.lists, where, ExecutionSort.NEWEST, 4)) == expected, where


async def test_executions_of_removed_jobs_are_found_by_module_and_label(shelf: Shelf) -> None:
    await shelf.connection.execute(
        "UPDATE cron_jobs SET removed_at = now(), next_tick = NULL, next_execution = NULL WHERE key = 'a.x'"
    )
    for where in (ExecutionFilter(module="a"), ExecutionFilter(labels={"team": "red"})):
        expected = sorted(row.execution_id for row in shelf.rows if fits(row, where))
        assert sorted(await listed(shelf.lists, where, ExecutionSort.NEWEST, 4)) == expected, where


async def test_jobs_are_ranked_page_by_page(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    await shelf.connection.execute("UPDATE cron_jobs SET failures = CASE key WHEN 'a.y' THEN 5 ELSE 1 END")
    await shelf.connection.execute("UPDATE cron_jobs SET next_tick = NULL, next_execution = NULL WHERE key = 'a.x'")
    await shelf.connection.execute(
        "UPDATE cron_jobs SET next_execution = next_execution - interval '30 minutes' WHERE key = 'b.x'"
    )
    await shelf.connection.execute(
        "UPDATE cron_jobs SET last_outcome = 'failed', last_run_at = now() WHERE key = 'staging/a.x'"
    )

    async def ranked(where: JobFilter, sort: JobSort) -> list[str]:
        keys: list[str] = []
        cursor: Cursor | None = None
        while cursor != ():
            page = await shelf.reads.rank_jobs(where, sort, cursor or (), 1)
            keys += [row.key for row in page.rows]
            cursor = page.next
        return keys

    assert (await ranked(JobFilter(), JobSort.FAILURES))[0] == "a.y"
    assert sorted(await ranked(JobFilter(), JobSort.FAILURES)) == sorted(JOBS)
    by_next = await ranked(JobFilter(), JobSort.NEXT)
    assert (by_next[0], by_next[-1]) == ("b.x", "a.x")
    assert (await ranked(JobFilter(), JobSort.LAST))[0] == "staging/a.x"
    assert await ranked(JobFilter(module="a", namespaces=("default",)), JobSort.NEXT) == ["a.y", "a.x"]
    await shelf.connection.execute(
        "UPDATE cron_jobs SET last_started_at = last_run_at + interval '3 s' WHERE key = 'staging/a.x'"
    )
    await shelf.connection.execute(
        "UPDATE cron_jobs SET last_outcome = 'completed', last_success = now() - interval '1 day', last_run_at = now(),"
        " last_started_at = now() + interval '5 s' WHERE key = 'a.y'"
    )
    assert (await ranked(JobFilter(), JobSort.LATENESS))[:2] == ["a.y", "staging/a.x"]
    by_success = await ranked(JobFilter(), JobSort.SUCCESS)
    assert by_success[:2] == ["staging/a.x", "a.y"], "what ran and never succeeded comes first, what never ran last"
    assert sorted(by_success) == sorted(JOBS)
    where = JobFilter(outcomes=("failed", "lost"))
    assert await ranked(where, JobSort.FAILURES) == ["staging/a.x"]
    assert [row.key for row in await shelf.reads.list_jobs(where, "", 10)] == ["staging/a.x"]
    assert await shelf.reads.count_jobs(where._replace(module="a")) == 1
    monkeypatch.setattr("cronring.controller.store.reads.RANKED_MAX", 3)
    with pytest.raises(Conflict, match="narrow it"):
        await ranked(JobFilter(), JobSort.NEXT)
