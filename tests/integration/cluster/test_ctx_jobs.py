"""Verbs that change jobs, on real processes: whoever dies in between, each call is done once."""

import asyncio
import json
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from cronring.client import AsyncClient
from cronring.controller.store.connect import Connection, connect
from tests.support.cluster import Cluster, Process
from tests.support.databases import PostgresServer, running_server
from tests.support.waiting import wait_until

MODULE: Final = Path(__file__).parent / "modules" / "asking.py"
GATE: Final = """
CREATE FUNCTION hold_commit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(4242);
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER held AFTER INSERT ON cron_verb_calls DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION hold_commit();
SELECT pg_advisory_lock(4242);
"""


class House(NamedTuple):
    cluster: Cluster
    client: AsyncClient
    sql: Connection
    journal: Path

    def notes(self) -> list[str]:
        lines = self.journal.read_text().splitlines() if self.journal.exists() else []
        return [json.loads(line)["what"] for line in lines]

    async def run(self, verb: str) -> None:
        async def deployed() -> bool:
            return bool(await self.client.jobs.list(module="asking"))

        await wait_until(deployed, self.cluster.runners[0].tail)
        await self.client.jobs.trigger(f"asking.{verb}")

    async def noted(self, words: str) -> None:
        def found() -> bool:
            return any(words in note for note in self.notes())

        processes = [*self.cluster.runners, *self.cluster.controllers]
        await wait_until(found, lambda: "\n".join([str(self.notes()), *(each.tail(8) for each in processes)]))

    async def done_by_verbs(self) -> list[tuple[str, str, str]]:
        """Actions on the jobs that they made: what, by whom, and why."""
        rows = await self.sql.fetch(
            "SELECT a.action, a.actor, a.note FROM cron_actions a JOIN cron_jobs j ON j.id = a.job_id"
            " WHERE j.key LIKE 'asking.invoice:%' ORDER BY a.id"
        )
        return [tuple(row) for row in rows]

    async def calls(self) -> list[int]:
        rows = await self.sql.fetch("SELECT number FROM cron_verb_calls ORDER BY execution_id, number")
        return [row["number"] for row in rows]


async def house_of(cluster: Cluster, journal: Path, controllers: int) -> AsyncGenerator[House]:
    for _ in range(controllers):
        cluster.start_controller()
    cluster.start_runner(MODULE)
    sql = await connect(cluster.database_url, "cronring test ctx jobs")
    async with AsyncClient(cluster.addresses.split(","), 30) as client:
        yield House(cluster, client, sql, journal)
    await sql.close()


@pytest.fixture
async def house(cluster: Cluster, journal: Path) -> AsyncIterator[House]:
    async for each in house_of(cluster, journal, 2):
        yield each


@pytest.fixture
async def lonely(cluster: Cluster, journal: Path) -> AsyncIterator[House]:
    """With one controller."""
    async for each in house_of(cluster, journal, 1):
        yield each


async def test_verbs_make_and_trigger_jobs_and_it_is_on_record_whose_call_it_was(house: House) -> None:
    await house.run("signup")
    await house.noted("made asking.invoice:c1")
    await house.noted("invoiced 2")
    (execution,) = await house.client.executions.list("asking.signup")
    by = f"execution {execution.id} of asking.signup"
    assert await house.done_by_verbs() == [("create", by, "signed up"), ("trigger", by, "")]
    job = await house.client.jobs.get("asking.invoice:c1")
    assert (job.schedule, job.payload, job.source) == ("0 6 1 1 *", '{"id":1}', "api")
    rows = await house.sql.fetch(
        "SELECT principal, method, remark FROM cron_audit_log WHERE subject LIKE 'job asking.invoice:c1%' ORDER BY id"
    )
    assert [tuple(row) for row in rows] == [
        ("local", "/cronring.v1.Jobs/CreateJob", f"for {by}: signed up"),
        ("local", "/cronring.v1.Jobs/TriggerJob", f"for {by}"),
    ]
    await house.run("signup_async")
    await house.noted("made 20")
    assert len(await house.client.jobs.list(module="asking", verb="invoice")) == 21


async def test_a_retry_makes_its_calls_again_and_names_make_creations_the_same(house: House) -> None:
    await house.run("fails_once")
    await house.noted("made again")
    done = await house.done_by_verbs()
    assert [action for action, _, _ in done] == ["create", "trigger", "trigger"]
    assert len({by for _, by, _ in done}) == 2, "each attempt is an execution of its own"
    assert await house.calls() == [1, 2, 1, 2]


async def committing(house: House) -> Process:
    """The controller whose commit of a call waits now."""
    found: list[Process] = []

    async def known() -> bool:
        rows = await house.sql.fetch(
            "SELECT c.pid FROM pg_locks l JOIN pg_stat_activity a USING (pid)"
            " JOIN controllers c ON a.application_name = 'cronring ' || c.id"
            " WHERE l.locktype = 'advisory' AND NOT l.granted"
        )
        pids = {row["pid"] for row in rows}
        found[:] = [each for each in house.cluster.controllers if each.pid in pids]
        return bool(found)

    await wait_until(known, house.cluster.runners[0].tail)
    return found[0]


async def commit_and_die(house: House) -> Process:
    """It has committed the verb's first call, and is killed before it can say so."""
    victim = await committing(house)
    victim.send(signal.SIGSTOP)
    await house.sql.execute("SELECT pg_advisory_unlock(4242)")

    async def committed() -> bool:
        return await house.calls() == [1]

    await wait_until(committed, "it was not committed")
    victim.kill()
    return victim


async def once(house: House) -> None:
    await house.noted("made asking.invoice:c1")
    await house.noted("invoiced 2")
    done = await house.done_by_verbs()
    assert [action for action, _, _ in done] == ["create", "trigger"]
    assert await house.calls() == [1, 2]
    assert sum(note.startswith("invoiced") for note in house.notes()) == 1


async def test_a_controller_is_killed_between_the_commit_and_its_answer(house: House) -> None:
    await house.sql.execute(GATE)
    await house.run("signup")
    await commit_and_die(house)
    await once(house)


async def test_the_only_controller_is_killed_so_and_the_verb_waits_until_it_is_back(lonely: House) -> None:
    await lonely.sql.execute(GATE)
    await lonely.run("signup")
    victim = await commit_and_die(lonely)
    await asyncio.sleep(1)  # it is away for so long
    lonely.cluster.restart_controller(victim)
    await once(lonely)


async def test_a_controller_that_stands_still_is_not_waited_for(house: House) -> None:
    """Another one does it; the first goes on later, and does it no second time."""
    await house.sql.execute(GATE)
    await house.run("signup")
    victim = await committing(house)
    victim.send(signal.SIGSTOP)
    await house.sql.execute("SELECT pg_advisory_unlock(4242)")
    await house.noted("made asking.invoice:c1")
    victim.send(signal.SIGCONT)
    await once(house)


async def test_what_was_declared_lost_changes_nothing_any_more(house: House) -> None:
    await house.run("gated")
    await house.noted("begun")
    status = await house.sql.execute(
        "UPDATE cron_executions SET outcome = 'lost', started_at = claimed_at, ended_at = now() WHERE outcome IS NULL"
    )
    assert status == "UPDATE 1"
    house.journal.with_name("go").touch()
    await house.noted("JobRefused CONFLICT: execution")
    assert all("has ended, or was taken for lost" in note for note in house.notes()[1:])
    assert await house.done_by_verbs() == []


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """One of its own, to be stopped."""
    with running_server("postgres18", durable=True) as made:
        yield made


async def test_without_postgresql_a_verb_hears_so_at_its_deadline_and_one_that_waits_longer_gets_it_done(
    server: PostgresServer, tmp_path: Path, journal: Path
) -> None:
    url = server.url(server.create_database())
    with Cluster(url, tmp_path, {"JOURNAL": str(journal)}) as cluster:
        houses = house_of(cluster, journal, 2)
        house = await anext(houses)
        await house.run("gated")
        await house.noted("begun")
        server.stop()
        journal.with_name("go").touch()
        await house.noted("JobsUnavailable UNAVAILABLE")
        told = house.notes()[1]
        assert "PostgreSQL" in told
        assert "whether it was done is not known" in told or "it was not done" in told
        server.start()
        await house.noted("made asking.invoice:c1")
        sql = await connect(url, "cronring test after")
        assert await sql.fetchval("SELECT count(*) FROM cron_jobs WHERE key = 'asking.invoice:c1'") == 1
        await sql.close()
        house.sql.terminate()
        await houses.aclose()
