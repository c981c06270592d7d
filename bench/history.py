"""History under load: so many executions a second for an hour, with retention at work, on one database.

    python -m bench.history [--minutes 60] [--rate 500] [--day 60] [--history 10] [--runs 2] [--sample 60]

The real store claims and ends in batches of a twentieth of a second, each run a second long. `maintain` looks after
history as in production. Its time is compressed: a partition holds `--day` seconds, not a day. History is kept for
`--history` of these, and for the newest `--runs` of each job, which runs once a minute. Maintenance comes six times in
one, so that partitions are made, given up and dropped all the time. `--day 86400 --history 30 --runs 100` is what
production has: nothing gets old within an hour, so that shows growth alone. A durable PostgreSQL 18 on the same cores.
"""

import argparse
import asyncio
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from typing import Final

from bench.limits_store import CONTROLLER
from bench.machine import machine
from bench.results import keep
from cronring.controller.core.model import ClaimRequest, ClaimResult, EndRequest, Job, RunnerInfo
from cronring.controller.ports.maintenance import DAY_MS, Retention
from cronring.controller.store.connect import Connection, connect
from cronring.controller.store.maintenance import maintain
from cronring.controller.store.pool import Database
from cronring.controller.store.store import PostgresStore
from cronring.schema.execution import Outcome, Report
from cronring.schema.module import Module, Verb
from tests.support.databases import running_server

PERIOD_S: Final = 60  # of each job
STEPS: Final = 20  # batches a second
RUN_S: Final = 1.0
MICRO: Final = 1_000_000
OUTPUT: Final = "a line of output, as verbs print them\n" * 4
SLOWER_MAX: Final = 1.5  # the last quarter's median claim, by the first's
GROWTH_MAX: Final = 1.3  # the largest table since history is full, by what it was when it had just become so
# The days that the migration has made are far too wide here.
NARROW = """
DO $$ DECLARE part text; first_at timestamptz := date_trunc('minute', now()); BEGIN
    FOR part IN SELECT name FROM cron_partitions LOOP
        EXECUTE format('ALTER TABLE cron_executions DETACH PARTITION %I', part);
        IF part <> 'cron_executions_kept' THEN EXECUTE format('DROP TABLE %I', part); END IF;
    END LOOP;
    DELETE FROM cron_partitions;
    EXECUTE format('ALTER TABLE cron_executions ATTACH PARTITION cron_executions_kept '
                   'FOR VALUES FROM (MINVALUE) TO (%L)', first_at);
    INSERT INTO cron_partitions VALUES ('cron_executions_kept', '-infinity', first_at);
END $$
"""
SIZES = """
SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint / 1048576 AS table_mib,
       coalesce(sum(pg_indexes_size(c.oid)), 0)::bigint / 1048576 AS index_mib,
       (SELECT pg_total_relation_size('cron_jobs')::bigint / 1048576) AS jobs_mib,
       coalesce(sum(greatest(s.n_dead_tup, 0)), 0)::bigint AS dead_rows,
       (SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'cron_jobs') AS dead_jobs,
       (SELECT count(*) FROM cron_partitions) AS partitions
FROM pg_class c LEFT JOIN pg_stat_user_tables s ON s.relid = c.oid
WHERE c.relkind = 'r' AND (c.relname LIKE 'cron\\_executions\\_%' OR c.relname LIKE 'cron\\_gone\\_%')
"""


@dataclass
class Sample:
    """What one span was like; sizes as at its end. Indexes are part of `table_mib`."""

    second: int
    executions: int
    behind_ms: float
    claim_p50_ms: float
    claim_p99_ms: float
    end_p50_ms: float
    end_p99_ms: float
    table_mib: int
    index_mib: int
    jobs_mib: int
    dead_rows: int
    dead_jobs: int
    partitions: int


class Load:
    """Claims each job at its ticks, and ends what it claimed a second later."""

    def __init__(self, store: PostgresStore, jobs: list[Job], first_tick: int) -> None:
        self.store = store
        self.first_tick = first_tick
        self.batches = [jobs[place :: PERIOD_S * STEPS] for place in range(PERIOD_S * STEPS)]
        self.claims_ms: list[float] = []
        self.ends_ms: list[float] = []
        self.behind_ms = 0.0
        self.done = 0

    async def run(self, seconds: int) -> None:
        """Raises AssertionError when a tick isn't claimed, or an execution isn't ended."""
        async with asyncio.TaskGroup() as group:
            for step in range(seconds * STEPS):
                due_s = self.first_tick / MICRO + step / STEPS
                await asyncio.sleep(max(0.0, due_s + 0.005 - time.time()))
                self.behind_ms = max(self.behind_ms, (time.time() - due_s) * 1e3)
                batch, tick = self.batches[step % len(self.batches)], self.first_tick + step // STEPS * MICRO
                group.create_task(self._batch(batch, tick))

    async def _batch(self, jobs: list[Job], tick: int) -> None:
        requests = [ClaimRequest(job.job_id, tick, tick, tick, "r1", job.deployment, ()) for job in jobs]
        began_s = time.perf_counter()
        _, claimed = await self.store.start_cron_jobs(CONTROLLER.controller_id, requests, 30_000)
        self.claims_ms.append((time.perf_counter() - began_s) * 1e3)
        await asyncio.sleep(RUN_S)
        ends = [_end_of(result, tick) for result in claimed]
        began_s = time.perf_counter()
        ended = await self.store.end_cron_jobs(CONTROLLER.controller_id, ends)
        self.ends_ms.append((time.perf_counter() - began_s) * 1e3)
        assert all(result.ended for result in ended)
        self.done += len(ended)

    def take(self) -> tuple[int, float, list[float], list[float]]:
        """What there was since last asked."""
        taken = self.done, self.behind_ms, self.claims_ms, self.ends_ms
        self.done, self.behind_ms, self.claims_ms, self.ends_ms = 0, 0.0, [], []
        return taken


def _end_of(result: ClaimResult, tick: int) -> EndRequest:
    """One in twenty fails."""
    assert result.execution_id is not None, result
    failed = result.execution_id % 20 == 0
    outcome = Outcome.FAILED if failed else Outcome.COMPLETED
    error = ("ValueError", "of no use") if failed else ("", "")
    report = Report(
        result.execution_id, result.job_id, result.claimed_at, outcome, result.claimed_at, result.claimed_at + MICRO,
        *error, OUTPUT, cpu_us=900, memory_peak_bytes=30_000_000, memory_shared=True,
    )  # fmt: skip
    following = tick + PERIOD_S * MICRO
    return EndRequest(report, tick, result.revision, following, following, ())


async def scene(store: PostgresStore, connection: Connection, jobs: int, day_s: int, seconds: int) -> list[Job]:
    await connection.execute(NARROW)
    await connection.execute(f"UPDATE cron_maintenance SET width = interval '{day_s} seconds'")
    await store.renew_lease(CONTROLLER, False, (seconds + 3_600) * 1_000, (), 8_750)
    await store.register_runner(RunnerInfo("r1", "bench", 1, "bench", ()))
    for first in range(0, jobs, 5_000):
        verbs = tuple(Verb(f"v{number}", schedule="1m") for number in range(first, min(first + 5_000, jobs)))
        await store.create_deployment(Module(f"bench{first}", verbs), f"{first:064}", 1, 300_000, True)
    _, found = await store.get_cron_jobs(tuple(range(4096)), 3_600_000)
    return sorted(found)


async def set_ticks(connection: Connection, load: Load) -> None:
    second = [(job.job_id, place // STEPS) for place, batch in enumerate(load.batches) for job in batch]
    await connection.execute(
        "UPDATE cron_jobs SET next_tick = t.tick, next_execution = t.tick "
        "FROM (SELECT id, $1::timestamptz + second * interval '1 second' AS tick "
        "      FROM unnest($2::bigint[], $3::integer[]) AS u (id, second)) t WHERE t.id = cron_jobs.id",
        load.first_tick,
        [job_id for job_id, _ in second],
        [at for _, at in second],
    )
    await connection.execute("VACUUM (ANALYZE) cron_jobs")


async def look_after(url: str, retention: Retention, pause_s: float, rounds: list[float]) -> None:
    """For ever. What was in the way is tried again soon, as in production."""
    while True:
        began_s = time.perf_counter()
        done = await maintain(url, retention)
        rounds.append(time.perf_counter() - began_s)
        await asyncio.sleep(pause_s / 5 if done.waiting else pause_s)


async def sampling(connection: Connection, load: Load, every_s: int, samples: list[Sample]) -> None:
    began_s = time.perf_counter()
    while True:
        await asyncio.sleep(every_s)
        done, behind_ms, claims, ends = load.take()
        record = await connection.fetchrow(SIZES)
        assert record is not None
        latencies = (_quantile(claims, 0.5), _quantile(claims, 0.99), _quantile(ends, 0.5), _quantile(ends, 0.99))
        samples.append(Sample(round(time.perf_counter() - began_s), done, round(behind_ms, 1), *latencies, *record))
        print(_row(list(asdict(samples[-1]).values())), file=sys.stderr, flush=True)


def _quantile(values: list[float], at: float) -> float:
    return round(sorted(values)[int(len(values) * at)], 1) if values else 0.0


def _row(cells: list[object]) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def verdict(samples: list[Sample], full_s: float) -> dict[str, object]:
    """Whether claims became slower, and whether the table grew after it was full."""
    quarter = max(1, len(samples) // 4)
    first = statistics.median(sample.claim_p50_ms for sample in samples[:quarter])
    last = statistics.median(sample.claim_p50_ms for sample in samples[-quarter:])
    full = [sample.table_mib for sample in samples if sample.second >= full_s]
    settled = max(full[: max(1, len(full) // 3)], default=0)
    grown = max(full) / settled if settled else None
    return {
        "claim_p50_first_quarter_ms": round(first, 1),
        "claim_p50_last_quarter_ms": round(last, 1),
        "slower": round(last / first, 2),
        "table_mib_when_full": settled,
        "grown_since_full": None if grown is None else round(grown, 2),
        "passed": last <= first * SLOWER_MAX and (grown is None or grown <= GROWTH_MAX),
    }


async def measure(url: str, options: argparse.Namespace) -> dict[str, object]:
    database = await Database.open(url, "bench", connections=6)
    connection = await connect(url, "bench scene")
    seconds = round(options.minutes * 60)
    retention = Retention(options.day * options.history * 1_000, options.runs, 400 * DAY_MS, options.day * 3_000)
    samples: list[Sample] = []
    rounds: list[float] = []
    try:
        store = PostgresStore(database)
        jobs = await scene(store, connection, options.rate * PERIOD_S, options.day, seconds)
        while (await maintain(url, retention)).partitions_made:
            pass
        load = Load(store, jobs, (int(time.time()) + 10) * MICRO)
        await set_ticks(connection, load)
        beside = [
            asyncio.create_task(look_after(url, retention, max(options.day / 6, 5), rounds)),
            asyncio.create_task(sampling(connection, load, options.sample, samples)),
        ]
        await load.run(seconds)
        for task in beside:
            task.cancel()
            if task.done():
                task.result()  # what has failed says so
        await asyncio.gather(*beside, return_exceptions=True)
        version = str(await connection.fetchval("SHOW server_version"))
    finally:
        await connection.close()
        await database.close()
    shape = {name: getattr(options, name) for name in ("minutes", "rate", "day", "history", "runs")}
    return {
        "name": "history", "shape": shape, "machine": machine(version), "maintenance_rounds": len(rounds),
        "longest_round_s": round(max(rounds, default=0.0), 2), "samples": [asdict(sample) for sample in samples],
        "verdict": verdict(samples, max(options.history * options.day, options.runs * PERIOD_S) + 2 * options.day),
    }  # fmt: skip


def table(result: dict[str, object]) -> str:
    """Markdown."""
    samples, shape, host, judged = (result[name] for name in ("samples", "shape", "machine", "verdict"))
    assert isinstance(samples, list)
    assert isinstance(shape, dict)
    assert isinstance(host, dict)
    assert isinstance(judged, dict)
    names = list(samples[0])
    lines = [
        f"### history: {', '.join(f'{name} {value}' for name, value in shape.items())}", "",
        " | ".join(f"{name} {value}" for name, value in host.items()), "",
        _row([*names]), "|---" * len(names) + "|", *(_row(list(sample.values())) for sample in samples), "",
        f"maintenance: {result['maintenance_rounds']} rounds, the longest {result['longest_round_s']} s", "",
        ", ".join(f"{name} {value}" for name, value in judged.items()),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rate", type=int, default=500, help="executions a second, a multiple of 20")
    parser.add_argument("--day", type=int, default=60, help="seconds that a partition holds")
    parser.add_argument("--history", type=int, default=10, help="partitions that are kept")
    parser.add_argument("--runs", type=int, default=2, help="of each job, how many are kept whatever their age")
    parser.add_argument("--sample", type=int, default=60, help="seconds")
    options = parser.parse_args()
    with running_server("postgres18", durable=True) as server:
        result = asyncio.run(measure(server.url(server.create_database()), options))
    keep(result, table(result))
    judged = result["verdict"]
    assert isinstance(judged, dict)
    sys.exit(0 if judged["passed"] else 1)


if __name__ == "__main__":
    main()
