"""Rows that a newer release wrote: their jobs are left alone and named, and everything else goes on."""

import asyncio
import json
import re

from cronring.client import AsyncClient
from cronring.client.model import JobSpec
from tests.integration.cluster.test_orphans import WITH, make_jobs, runs
from tests.support.cluster import Cluster, Process
from tests.support.looking import look
from tests.support.waiting import until

NEWER, OTHER = "crawler.site:docs", "crawler.site:blog"
POLICY = json.dumps({"retries": 1, "blackout": "Dec 24"}, separators=(",", ":"))
SUNSET = "sunset 30m before"
SCHEDULED_BY_A_NEWER_RELEASE = """
WITH job AS (
    UPDATE cron_jobs SET schedule = $2, revision = revision + 1 WHERE key = $1 RETURNING id
)
UPDATE cron_schedules s SET schedule = $2 FROM job WHERE s.job_id = job.id AND s.until_at IS NULL
"""
AS_A_NEWER_RELEASE = """
WITH job AS (
    UPDATE cron_jobs SET policy = $2, revision = revision + 1 WHERE key = $1 RETURNING id
)
UPDATE cron_schedules s SET policy = $2 FROM job WHERE s.job_id = job.id AND s.until_at IS NULL
"""


def written_by_a_newer_release(cluster: Cluster, statement: str = AS_A_NEWER_RELEASE, text: str = POLICY) -> None:
    async def write() -> None:
        connection = await look(cluster.database_url)
        try:
            assert await connection.execute(statement, NEWER, text) == "UPDATE 1"
        finally:
            await connection.close()

    asyncio.run(write())


def set_anew(cluster: Cluster) -> None:
    async def update() -> None:
        async with AsyncClient([each.grpc for each in cluster.controllers]) as client:
            await client.jobs.update(NEWER, JobSpec(policy={"retries": 2}), fields=["policy"])

    asyncio.run(update())


def unread(cluster: Cluster, controller: Process) -> str | None:
    _, page = cluster.http(controller, "/metrics")
    found = re.search(r"^cronring_node_jobs_unread (\S+)$", page, re.MULTILINE)
    return found and found[1]


def told(controller: Process) -> list[tuple[str, str]]:
    lines = [json.loads(line) for line in controller.log.read_text().splitlines() if '"job_unread"' in line]
    return [(line["job"], line["fields"]) for line in lines]


def test_a_row_of_a_newer_release_ends_nobody(cluster: Cluster) -> None:
    first = cluster.start_controller()
    cluster.start_runner(WITH)
    until("the module is deployed", lambda: cluster.cli("deployments", "list"))
    make_jobs(cluster)
    cluster.cli("jobs", "resume", OTHER)
    until("both tick", lambda: runs(cluster, NEWER) and runs(cluster, OTHER))
    written_by_a_newer_release(cluster)
    until("it is named", lambda: told(first) == [(NEWER, "blackout")], 90)
    second = cluster.start_controller()  # one that starts meets the row, too

    seen, others = runs(cluster, NEWER), runs(cluster, OTHER)
    until("the other job goes on", lambda: runs(cluster, OTHER) > others + 5)
    assert runs(cluster, NEWER) == seen
    until("it is counted", lambda: "1.0" in {unread(cluster, first), unread(cluster, second)})
    assert {job["key"] for job in cluster.cli("jobs", "list")} == {NEWER, OTHER, "crawler.yearly"}
    assert cluster.cli("jobs", "show", NEWER)["policy"] == {"retries": 1}
    for answered in (
        ["why", NEWER],
        ["jobs", "show", NEWER],
        ["executions", "list"],
        ["audit"],
        ["jobs", "stats", NEWER],
    ):
        done = cluster.ask(*answered)
        assert done.returncode == 0, (answered, done.stdout, done.stderr)
    for refused in (["pause", NEWER], ["update", NEWER, "--retries", "2"], ["update", NEWER, "--cron", "* * * * *"]):
        done = cluster.ask("jobs", *refused)
        assert done.returncode != 0, refused
        assert "ask a controller of a newer release, or set the whole policy anew" in " ".join(done.stderr.split())

    set_anew(cluster)
    until("it ticks again", lambda: runs(cluster, NEWER) > seen)
    assert all(each.alive() for each in (first, second))
    assert told(first) == [(NEWER, "blackout")]


def test_a_schedule_of_a_newer_release_ends_nobody(cluster: Cluster) -> None:
    first = cluster.start_controller()
    cluster.start_runner(WITH)
    until("the module is deployed", lambda: cluster.cli("deployments", "list"))
    make_jobs(cluster)
    cluster.cli("jobs", "resume", OTHER)
    until("both tick", lambda: runs(cluster, NEWER) and runs(cluster, OTHER))
    written_by_a_newer_release(cluster, SCHEDULED_BY_A_NEWER_RELEASE, SUNSET)
    until("it is named", lambda: told(first) == [(NEWER, "schedule")], 90)
    second = cluster.start_controller()  # one that starts meets the row, too

    seen, others = runs(cluster, NEWER), runs(cluster, OTHER)
    until("the other job goes on", lambda: runs(cluster, OTHER) > others + 5)
    assert runs(cluster, NEWER) == seen
    assert {job["key"]: job["schedule"] for job in cluster.cli("jobs", "list")}[NEWER] == SUNSET
    for answered in ("why", "jobs show", "jobs stats", "executions list --job", "audit --job"):
        done = cluster.ask(*answered.split(), NEWER)
        assert done.returncode == 0, (answered, done.stdout, done.stderr)
    for refused in (["pause", NEWER], ["update", NEWER, "--retries", "2"]):
        done = cluster.ask("jobs", *refused)
        assert done.returncode != 0, refused
        assert "ask a controller of a newer release, or set another schedule" in " ".join(done.stderr.split())

    cluster.cli("jobs", "update", NEWER, "--cron", "* * * * * *")
    until("it ticks again", lambda: runs(cluster, NEWER) > seen)
    assert all(each.alive() for each in (first, second))
