"""What pictures of the console show: a cluster that has lived through a week, and in which something is wrong now."""

import time
from pathlib import Path
from typing import Final

from cronring.controller.store.connect import connect
from tests.support.databases import run_coroutine
from tests.support.secured import SecuredCluster

MODULES: Final = sorted((Path(__file__).parent / "modules" / "shown").glob("*.py"))
LIVES_S: Final = 40  # until each kind of run has been
# Key of a job; minutes between its runs; seconds that they lasted at most; hours since when they fail.
PAST: Final = (
    ("billing.charge_cards", 10, 4, 2),
    ("billing.send_invoices", 10, 2, 2),
    ("billing.close_day", 1_440, 180, 0),
    ("billing.refresh_rates", 5, 1, 0),
    ("search.reindex", 4, 40, 0),
    ("search.sitemap", 15, 30, 0),
    ("mail.deliver", 6, 2, 0),
    ("mail.bounces", 60, 20, 0),
)
# Seven days of runs, until the cluster began. Ids grow with time, as those of real runs. Nights were slower. What fails
# now did so a week ago, too.
RUNS: Final = """
INSERT INTO cron_executions (job_id, deployment_id, tick, run_at, claimed_at, started_at, ended_at, outcome,
                             error_type, error_message, controller_id, runner_id, hard_deadline)
SELECT job_id, deployment_id, at, at, began, began, began + lasted, CASE WHEN broken THEN 'failed' ELSE 'completed' END,
       CASE WHEN broken THEN 'ConnectionRefusedError' END,
       CASE WHEN broken THEN 'payments.example: connection refused' END, 'before', 'before', at + interval '1 hour'
FROM (
    SELECT *, at + late_ms * interval '1 ms' AS began,
           hours > 0 AND (at > now() - hours * interval '1 hour' OR at < now() - interval '166 hours') AS broken,
           most_s * interval '1 s' * chance * CASE WHEN extract(hour FROM at) < 6 THEN 1 ELSE 0.6 END AS lasted
    FROM (
        SELECT j.id AS job_id, j.deployment_id, p.most_s, p.hours,
               date_bin(p.apart * interval '1 min', s.from_at, 'epoch') - n * p.apart * interval '1 min' AS at,
               0.3 + abs(hashint8(j.id * 7919 + n)) % 700 / 1000.0 AS chance,
               3 + abs(hashint8(j.id * 31 + n)) % 40 AS late_ms
        FROM unnest($1::text[], $2::int[], $3::int[], $4::int[]) p (key, apart, most_s, hours)
        JOIN cron_jobs j ON j.key = p.key
        JOIN cron_schedules s ON s.job_id = j.id AND s.until_at IS NULL
        CROSS JOIN LATERAL generate_series(0, 10080 / p.apart) n
    ) ticks
) runs
ORDER BY at
"""
# What those runs were due by, and what their job's row knows of the last one.
ROWS: Final = """
WITH told AS (
    SELECT j.id, e.* FROM cron_jobs j CROSS JOIN LATERAL (
        SELECT min(tick) AS first, max(tick) AS last, max(tick) FILTER (WHERE outcome = 'completed') AS success,
               count(*) FILTER (WHERE outcome = 'failed' AND tick > now() - interval '1 day') AS failures
        FROM cron_executions WHERE job_id = j.id AND controller_id = 'before') e
    WHERE j.key = $1
), booked AS (
    INSERT INTO cron_schedules (job_id, revision, schedule, anchor, from_at, until_at)
    SELECT t.id, 0, 'every ' || $2::bigint || 'm', 'epoch', t.first - interval '1 s', s.from_at
    FROM told t JOIN cron_schedules s ON s.job_id = t.id AND s.until_at IS NULL
)
UPDATE cron_jobs j
SET created_at = t.first - interval '1 s', last_success = t.success, failures = t.failures, last_run_at = t.last,
    last_started_at = t.last, last_ended_at = t.last,
    last_outcome = CASE WHEN t.failures > 0 THEN 'failed' ELSE 'completed' END
FROM told t WHERE j.id = t.id
"""
SET: Final = """
set: billing-prod
jobs:
  - verb: billing.close_day
    name: oslo
    cron: 30 1 * * *
    timezone: Europe/Oslo
    labels: {team: billing, workspace: oslo}
  - verb: billing.charge_cards
    name: oslo
    cron: 0 8 * * 1-5
    timezone: Europe/Oslo
    payload: {customer: oslo, limit: 20}
    labels: {team: billing, workspace: oslo}
"""


def live(cluster: SecuredCluster, folder: Path) -> int:
    """Until there is something to see. Return the execution that goes on."""
    run_coroutine(_remember(cluster.database_url))
    _operate(cluster, folder)
    execution: int = cluster.cli("jobs", "trigger", "billing.close_day")["execution_id"]
    time.sleep(LIVES_S)  # what is shown is what happens in this time
    return execution


async def _remember(url: str) -> None:
    connection = await connect(url, "cronring test scene")
    await connection.execute(RUNS, *map(list, zip(*PAST, strict=True)))
    for row in PAST:
        await connection.execute(ROWS, *row[:2])
    await connection.close()


def _operate(cluster: SecuredCluster, folder: Path) -> None:
    """What people did."""
    cli = cluster.cli
    file = folder / "billing.yaml"
    file.write_text(SET)
    cli("apply", str(file), "--as", "ci", "--note", "release 7")
    cli("jobs", "pause", "search.sitemap", "--note", "the crawler is moved to the new host", "--as", "ana")
    cli("jobs", "pause", "mail.digest", "--until", "2h", "--note", "a wrong template", "--as", "ben")
    cli("limits", "set", "billing", "--max-concurrent", "5", "--note", "its database", "--as", "ana")
    cli("limits", "set", "--by", "label:workspace", "--max-concurrent", "1", "--as", "ana")
    cli("template", "set", "nightly", "--cron", "0 3 * * *", "--retries", "3", "--description", "what runs at night")
    for workspace in ("oslo", "bergen"):
        cli("jobs", "create", "--queue", "reports", "--workspace", workspace, "--every", "10s", "--payload", "{}")
