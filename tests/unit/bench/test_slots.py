"""bench.slots and bench.citus: what they change in statements, and a very small run."""

import asyncio
from collections.abc import Callable

from bench.citus import EXPERIMENT, script
from bench.slots import BY_ID, VARIANTS, Round, figures_of, naming_slot, scene, slots, table
from cronring import sql
from cronring.controller.core.model import EndRequest, EndResult
from cronring.controller.store.connect import connect
from tests.proxies.statements import Tables
from tests.support.databases import PostgresServer
from tests.support.waiting import TIMEOUT_S

MEANWHILE_JOBS = "UPDATE cron_jobs SET missed = missed WHERE id = ANY($1)"
MEANWHILE_EXECUTIONS = "UPDATE cron_executions SET missed = missed WHERE id = ANY($1)"


def test_every_look_up_of_a_job_by_its_id_is_found_in_the_statements() -> None:
    """Else the variant that names slots would measure the statements as they are."""
    texts = sql.statement("StartCronJobs") + sql.statement("EndCronJob")
    assert [by_id for by_id, _ in BY_ID if by_id not in texts] == []
    for name, look_ups in (("StartCronJobs", 3), ("EndCronJob", 4)):
        assert naming_slot(sql.statement(name)).count("% 4096") == look_ups


def test_a_ratio_is_that_of_rounds_side_by_side() -> None:
    whole = [Round(1_000, 1.0, Tables(2_000_000, {})), Round(500, 1.0, Tables(900_000, {}))]
    mine = [Round(800, 1.0, Tables(800, {})), Round(400, 1.0, Tables(800, {}))]
    figures = figures_of(VARIANTS[1], mine, whole)
    assert figures["of_whole"] == 0.8
    assert figures["per_second"] == 600
    assert figures["wal_bytes"] == 1


def test_a_very_small_run() -> None:
    result = slots(jobs=200, rounds=1, seconds=0.05)
    whole, by_id, by_slot = result["variants"]
    assert by_id["buffers"] > 1.3 * whole["buffers"]
    assert by_slot["buffers"] < 1.1 * whole["buffers"]
    coarse = "refetch_postgresql_us"  # the kernel counts by hundredths of a second
    assert all(value > 0 for name, value in result["figures"].items() if name != coarse)
    assert "partitions by slot" in table(result)


def test_the_experiment_on_citus_is_a_scene_and_forms() -> None:
    scene, forms = script(EXPERIMENT)
    assert scene[0].startswith("DROP TRIGGER")
    assert sum("create_distributed_table" in statement for statement in scene) == 6
    assert len(forms) == 9
    assert all("slot" in form or "alone" in name for name, form in forms.items())


async def test_an_end_that_names_slots_ends_what_somebody_else_has_just_changed(
    postgres_servers: Callable[[str], PostgresServer],
) -> None:
    """Pruned by a join, while it runs, partitions are found again when a changed row is looked at once more."""
    server = postgres_servers("postgres18")
    async with scene(server, VARIANTS[2], 500) as bench:
        other = await connect(server.url(await bench.session.fetchval("SELECT current_database()")), "other")
        end, ended = bench.worker.store.end_cron_jobs, list[EndResult]()

        async def after_others(controller_id: str, requests: list[EndRequest]) -> list[EndResult]:
            async with other.transaction():
                await other.execute(MEANWHILE_JOBS, [each.report.job_id for each in requests[::3]])
                await other.execute(MEANWHILE_EXECUTIONS, [each.report.execution_id for each in requests[::5]])
                ending = asyncio.ensure_future(end(controller_id, requests))
                async with asyncio.timeout(TIMEOUT_S):
                    while not await bench.session.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
                        await asyncio.sleep(0.01)
            ended.extend(await ending)
            return ended

        bench.worker.store.end_cron_jobs = after_others  # type: ignore[method-assign]  # of this one store
        await bench.worker.one(bench.worker.batches[0])
        await other.close()
        assert len(ended) == 500
        assert all(each.ended and each.next_tick is not None for each in ended)
