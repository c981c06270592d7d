"""A herd: 20,000 of 100,000 jobs due at the same instant, and the same with a jitter; all processes on this machine.

The 20,000 are no-op async verbs in modules that runners host. They come every 10 s and not once a minute, so that this
is over in a minute. One tick of theirs is measured, after one that warms every path. The other 80,000 are rows alone,
of jobs due in six hours: copies of one that the store has deployed, each in its own slot, with its books. Then new
runners bring the same modules with a jitter, which reschedules the same jobs, and one tick is measured again. Lateness
is started_at - run_at as the books have it. The commit of the last end is seen by asking every 20 ms whether any of the
herd has not moved on.
"""

import asyncio
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import asyncpg
import click

from bench.fleet import Fleet, end_runners, fleet
from bench.machine import machine
from bench.results import Part, head, keep, rows
from cronring.controller.store.pool import Database
from cronring.controller.store.store import PostgresStore
from cronring.schema.duration import parse_duration
from cronring.schema.keys import slot_of
from cronring.schema.module import Module, Verb
from cronring.schema.policy import Policy
from cronring.schema.validate import VERBS_LIMIT
from tests.support.looking import look

PERIOD_S: Final = 10
JITTER: Final = "8s"
DEPLOYED_S: Final = 120.0
QUANTILES: Final = (0.5, 0.99, 1.0)

ASLEEP: Final = """
WITH copies AS (
    INSERT INTO cron_jobs (key, namespace, module, verb, slot, deployment_id, schedule, anchor, timeout_ms,
                           on_disconnect, next_tick, next_execution, policy, concurrency, pause_after, payload)
    SELECT a.key, j.namespace, j.module, j.verb, a.slot, j.deployment_id, j.schedule, j.anchor, j.timeout_ms,
           j.on_disconnect, j.next_tick, j.next_execution, j.policy, j.concurrency, j.pause_after, j.payload
    FROM cron_jobs j, unnest($1::text[], $2::integer[]) AS a (key, slot)
    WHERE j.module = 'asleep'
    RETURNING id, revision, schedule, anchor, policy, created_at
)
INSERT INTO cron_schedules (job_id, revision, schedule, anchor, policy, from_at) SELECT * FROM copies
"""
DEPLOYED: Final = """
SELECT count(*) FROM cron_jobs j JOIN deployments d ON d.id = j.deployment_id
WHERE j.removed_at IS NULL AND j.module <> 'asleep' AND d.min_replicas > 0 AND j.policy LIKE $1
"""
# A claim leaves the tick as the row's next one; its end moves the row on, whatever else may be due by then.
COMING: Final = "SELECT EXISTS (SELECT FROM cron_jobs WHERE id > $1 AND next_tick <= to_timestamp($2))"
BOOKS: Final = """
SELECT count(*) AS executions,
       count(*) FILTER (WHERE outcome = 'completed') AS completed,
       percentile_cont($2::float8[]) WITHIN GROUP (ORDER BY extract(epoch FROM started_at - run_at)) AS late_s
FROM cron_executions WHERE tick = to_timestamp($1)
"""
SKIPPED: Final = """
SELECT reason, count(*) AS jobs FROM cron_skips WHERE to_timestamp($1) BETWEEN first_tick AND last_tick
GROUP BY reason ORDER BY reason
"""
SECONDS: Final = """
SELECT second, count(*) FILTER (WHERE due) AS due, count(*) FILTER (WHERE NOT due) AS started
FROM (SELECT true AS due, floor(extract(epoch FROM run_at - tick))::integer AS second
      FROM cron_executions WHERE tick = to_timestamp($1)
      UNION ALL
      SELECT false, floor(extract(epoch FROM started_at - tick))::integer
      FROM cron_executions WHERE tick = to_timestamp($1)) s
GROUP BY second ORDER BY second
"""


def modules(folder: Path, jobs: int, jitter: str) -> list[Path]:
    """As many files as so many verbs take; without a jitter if that is empty."""
    said = f', jitter="{jitter}"' if jitter else ""
    written = []
    for first in range(0, jobs, VERBS_LIMIT):
        lines = ["from cronring import cron", ""]
        for number in range(first, min(first + VERBS_LIMIT, jobs)):
            lines += [f'@cron("*/{PERIOD_S} * * * * *"{said})', f"async def job_{number}() -> None:", "    pass", ""]
        written.append(folder / (jitter or "together") / f"herd_{first}.py")
        written[-1].parent.mkdir(exist_ok=True)
        written[-1].write_text("\n".join(lines))
    return written


async def make_asleep(url: str, connection: asyncpg.Connection, jobs: int) -> int:
    """So many jobs that are due in six hours. The last one's id."""
    database = await Database.open(url, "bench", connections=1)
    try:
        due = datetime.now(UTC) + timedelta(hours=6)
        verb = Verb("first", schedule=f"{due.minute} {due.hour} * * *", policy=Policy(jitter="off"))
        await PostgresStore(database).create_deployment(Module("asleep", (verb,)), "0" * 64, 1, 300_000, True)
    finally:
        await database.close()
    keys = [f"asleep.job_{number}" for number in range(jobs - 1)]
    await connection.execute(ASLEEP, keys, [slot_of(key) for key in keys])
    return int(await connection.fetchval("SELECT max(id) FROM cron_jobs"))


async def deployed(connection: asyncpg.Connection, jobs: int, policy: str) -> None:
    """Wait until so many have such a policy. Raises TimeoutError after two minutes."""
    async with asyncio.timeout(DEPLOYED_S):
        while await connection.fetchval(DEPLOYED, policy) < jobs:
            await asyncio.sleep(0.2)


async def tick_measured(
    connection: asyncpg.Connection, asleep: int, jobs: int, skip: int, quiet_s: float
) -> dict[str, Any]:
    """The next tick after `skip` others. Nothing is asked of the database in its first `quiet_s`."""
    tick = (int(time.time()) + 2) // PERIOD_S * PERIOD_S + (1 + skip) * PERIOD_S
    click.echo(f"{jobs} are due in {tick - time.time():.0f} s …", err=True)
    await asyncio.sleep(tick + quiet_s - time.time())
    async with asyncio.timeout(PERIOD_S * 3):
        while await connection.fetchval(COMING, asleep, tick):
            await asyncio.sleep(0.02)
    drained_s = time.time() - tick
    books = await connection.fetchrow(BOOKS, tick, QUANTILES)
    seconds = await connection.fetch(SECONDS, tick)
    skipped = await connection.fetch(SKIPPED, tick)
    assert books is not None
    assert books["executions"], "nothing of the herd has run"
    late = dict(zip(("p50_ms", "p99_ms", "max_ms"), (round(each * 1e3, 1) for each in books["late_s"]), strict=True))
    return {
        "missed": jobs - books["completed"],
        "skipped": {each["reason"]: each["jobs"] for each in skipped},
        "drained_s": round(drained_s, 2),
        "per_second": round(jobs / drained_s),
        **late,
        "seconds": [[each["second"], each["due"], each["started"]] for each in seconds],
    }


async def both(running: Fleet, jobs: int, herd: int, jitter: str, runners: int) -> dict[str, Any]:
    """The herd at once, and spread."""
    # So that asking for what is still to come looks at the herd's rows alone.
    connection = await look(running.url, enable_seqscan="off")
    try:
        click.echo(f"{jobs - herd} jobs that are due in hours …", err=True)
        asleep = await make_asleep(running.url, connection, jobs - herd)
        click.echo(f"{herd} jobs that come every {PERIOD_S} s …", err=True)
        files = modules(running.folder, herd, "")
        running.start_runners(runners, files)
        await deployed(connection, herd, "")
        await connection.execute("VACUUM (ANALYZE) cron_jobs")
        at_once = await tick_measured(connection, asleep, herd, 1, 0.0)
        click.echo(f"the same with a jitter of {jitter} …", err=True)
        old = running.start_runners(runners, modules(running.folder, herd, jitter))
        await deployed(connection, herd, "%jitter%")
        end_runners(old)
        spread = await tick_measured(connection, asleep, herd, 0, parse_duration(jitter) / 1_000)
        version = str(await connection.fetchval("SHOW server_version"))
        return {"machine": machine(version), "at_once": at_once, "spread": spread}
    finally:
        await connection.close()


def herds(jobs: int = 100_000, due: int = 20_000, controllers: int = 3, runners: int = 1) -> dict[str, Any]:
    """Run it; the result is JSON-ready."""
    load = os.getloadavg()[0]
    with fleet(controllers) as running:
        result = asyncio.run(both(running, jobs, due, JITTER, runners))
    names = ("drained_s", "p50_ms", "p99_ms", "max_ms")
    return {
        "name": "herd",
        "shape": {"jobs": jobs, "due at once": due, "jitter": JITTER, "controllers": controllers, "runners": runners},
        **result,
        "load": {"before": round(load, 2), "after": round(os.getloadavg()[0], 2)},
        "figures": {
            "per_second": result["at_once"]["per_second"],
            **{f"{case}_{name}": result[case][name] for case in ("at_once", "spread") for name in names},
        },
    }


def by_second(measured: dict[str, Any]) -> list[str]:
    """How many were due, and started, in each second after the tick."""
    columns = ["second after the tick", *(str(second) for second, _, _ in measured["seconds"])]
    due, started = ([f"{each[place]:,}" for each in measured["seconds"]] for place in (1, 2))
    return rows(columns, [["due (run_at)", *due], ["started", *started]])


def told(measured: dict[str, Any]) -> str:
    why = ", ".join(f"{count} as {reason}" for reason, count in measured["skipped"].items())
    return (
        f"the last end was committed {measured['drained_s']} s after the tick, {measured['missed']} missed"
        f"{f' ({why})' if why else ''}; "
        f"lateness after run_at p50 {measured['p50_ms']:g} ms, p99 {measured['p99_ms']:g}, max {measured['max_ms']:g}."
    )


def table(result: dict[str, Any]) -> str:
    """Markdown: the herd at once, and with a jitter."""
    load, shape, at_once = result["load"], result["shape"], result["at_once"]
    lines = [
        *head(result),
        f"No-op async verbs every {PERIOD_S} s, deployed by runners; the other "
        f"{shape['jobs'] - shape['due at once']:,} jobs are rows put into the tables by SQL, due in six hours. "
        f"Load average {load['before']} before, {load['after']} after.",
        "",
        f"Without a jitter, {at_once['per_second']:,} a second: {told(at_once)}",
        "",
        *by_second(at_once),
        "",
        f'With jitter="{shape["jitter"]}": {told(result["spread"])}',
        "",
        *by_second(result["spread"]),
    ]
    return "\n".join(lines) + "\n"


PART = Part("herd", 75, herds, table)


@click.command()
@click.option("--jobs", default=100_000, show_default=True, help="In all.")
@click.option("--due", default=20_000, show_default=True, help="Of these, due at the same instant.")
@click.option("--controllers", default=3, show_default=True)
@click.option("--runners", default=1, show_default=True)
def main(jobs: int, due: int, controllers: int, runners: int) -> None:
    """A herd: how fast it is drained, and how a jitter spreads it.

    \b
    Examples:
      python -m bench.herd
      python -m bench.herd --jobs 10000 --due 2000    a small one
    """
    result = herds(jobs, due, controllers, runners)
    keep(result, table(result))


if __name__ == "__main__":
    main()
