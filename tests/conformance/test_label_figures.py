"""Figures of the jobs that have some labels, folded and not yet folded."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import NamedTuple

import pytest

from cronring.controller.ports.statistics import SchedulerFigures
from cronring.controller.store.connect import Connection, connect
from cronring.controller.store.folding import fold
from cronring.controller.store.pool import Database
from cronring.controller.store.statistics import PostgresStatistics
from cronring.schema.execution import Outcome
from tests.conformance.harness import PostgresScene, World

pytestmark = pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])
# By job: its labels, and how its one run ended; None: it runs.
JOBS: Mapping[str, tuple[str, Outcome | None]] = {
    "a": ('{"team": "x", "tier": "slow"}', Outcome.COMPLETED),
    "b": ('{"team": "x"}', Outcome.FAILED),
    "c": ('{"team": "x", "tier": "slow"}', None),
    "d": ('{"team": "y"}', Outcome.COMPLETED),
    "e": ("{}", Outcome.LOST),
}


class Labelled(NamedTuple):
    """Jobs that have run once each."""

    database: Database
    scene: Connection

    async def figures(
        self, labels: Mapping[str, str], namespaces: tuple[str, ...] | None = None
    ) -> tuple[dict[str, int], int, dict[str, int]]:
        """Jobs by status, executions begun, and how many ended as what."""
        found: SchedulerFigures = await PostgresStatistics(self.database, 5_000).scheduler(namespaces, labels)
        outcomes = {name: count for name, count in found.figures.outcomes.items() if count}
        return found.jobs, found.figures.executions, outcomes


@pytest.fixture
async def labelled(database_url: str) -> AsyncIterator[Labelled]:
    database, scene = await Database.open(database_url, "figures"), await connect(database_url, "scene")
    world = World(PostgresScene(database, scene))
    for execution in await world.running("c1", *JOBS):
        labels, outcome = JOBS[execution.job.verb]
        await scene.execute("UPDATE cron_jobs SET labels = $2::text::jsonb WHERE id = $1", execution.job.job_id, labels)
        if outcome is not None:
            await world.end(execution, outcome)
    yield Labelled(database, scene)
    await scene.close()
    await database.close()


async def folded(database: Database) -> None:
    """Twice, as the first round only finds out how far the next can go."""
    for _ in range(3):
        async with database.transaction("folding") as transaction:
            await fold(transaction.fetch, 100)


async def test_they_are_of_all_labels_that_are_asked_for(labelled: Labelled) -> None:
    for _ in range(2):
        jobs, executions, outcomes = await labelled.figures({"team": "x"})
        assert sum(jobs.values()) == executions == 3
        assert jobs["running"] == 1
        assert outcomes == {"completed": 1, "failed": 1}
        jobs, executions, outcomes = await labelled.figures({"team": "x", "tier": "slow"})
        assert (sum(jobs.values()), executions, outcomes) == (2, 2, {"completed": 1})
        assert await labelled.figures({"team": "z"}) == ({}, 0, {})
        assert (await labelled.figures({}))[1] == 5
        await folded(labelled.database)


async def test_they_are_of_what_one_may_view(labelled: Labelled) -> None:
    assert (await labelled.figures({"team": "x"}, ("default",)))[1] == 3
    assert await labelled.figures({"team": "x"}, ("prod",)) == ({}, 0, {})
    assert await labelled.figures({"team": "x"}, ()) == ({}, 0, {})


async def test_a_removed_job_is_none_and_its_runs_count(labelled: Labelled) -> None:
    before = await labelled.figures({"team": "x"})
    await labelled.scene.execute(
        "UPDATE cron_jobs SET removed_at = now(), next_tick = NULL, next_execution = NULL WHERE verb = 'b'"
    )
    jobs, executions, outcomes = await labelled.figures({"team": "x"})
    assert (executions, outcomes) == before[1:]
    assert sum(jobs.values()) == 2


async def test_each_question_is_kept_by_itself(labelled: Labelled) -> None:
    statistics = PostgresStatistics(labelled.database, 5_000)
    asked: list[dict[str, str]] = [{"team": "x"}, {"team": "y"}, {}, {"team": "x"}]
    found = await asyncio.gather(*(statistics.scheduler(None, labels) for labels in asked))
    assert [each.figures.executions for each in found] == [3, 1, 5, 3]
    assert found[0] is found[3]
