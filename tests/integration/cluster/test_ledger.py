"""After an outage, a pause and the loss of its runner a living cluster is audited clean; "why" tells each reason."""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.support.cluster import Cluster
from tests.support.looking import look
from tests.support.programs import Done, run
from tests.support.waiting import until

MODULE = Path(__file__).parent / "modules" / "ledger.py"
Answer = dict[str, Any]


class Story:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def fetch(self, statement: str, *arguments: object) -> list[asyncpg.Record]:
        async def fetched() -> list[asyncpg.Record]:
            connection = await look(self.cluster.database_url)
            try:
                return list(await connection.fetch(statement, *arguments))
            finally:
                await connection.close()

        return asyncio.run(fetched())

    def run(self, *arguments: str) -> Done:
        return self.cluster.ask(*arguments)

    def until_completed(self, verb: str, after: float) -> None:
        """A run of a tick after that instant has completed."""
        found = "SELECT FROM cron_executions e JOIN cron_jobs j ON j.id = e.job_id WHERE j.verb = $1 AND outcome = "
        found += "'completed' AND extract(epoch FROM e.tick)::float8 > $2 LIMIT 1"
        until(self._tails, lambda: self.fetch(found, verb, after))

    def _tails(self) -> str:
        return "\n".join(p.tail() for p in self.cluster.controllers + self.cluster.runners)

    def skip_of(self, reason: str, verb: str) -> str:
        """The first tick of that verb that was skipped for that reason."""
        rows = self.fetch(
            "SELECT s.first_tick FROM cron_skips s JOIN cron_jobs j ON j.id = s.job_id "
            "WHERE s.reason = $1 AND j.verb = $2 ORDER BY s.id LIMIT 1",
            reason, verb,
        )  # fmt: skip
        assert rows, f"no tick of {verb} was skipped as {reason}"
        return str(rows[0]["first_tick"].isoformat())

    def why(self, verb: str, *at: str) -> tuple[str, str]:
        """The verdict, and all sentences."""
        answer: Answer = self.cluster.cli("why", f"ledger.{verb}", *at)
        return answer["verdict"], " ".join(answer["sentences"])

    def clean_audit(self) -> Answer:
        """Once all that was due up to now has been decided."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(round(time.time() - 1)))
        said = ""

        def clean() -> Answer | None:
            nonlocal said
            done = self.run("audit", "--thorough", "--until", stamp, "-o", "json")
            said = done.stdout
            answer: Answer = json.loads(said)
            return answer if done.returncode == 0 and answer["pending"] == answer["running"] == 0 else None

        return until(lambda: said, clean)


@pytest.fixture(scope="module")
def story(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with Cluster(module_database_url, tmp_path_factory.mktemp("ledger")) as cluster:
        for _ in range(3):
            cluster.start_controller()
        runner = cluster.start_runner(MODULE)
        told = Story(cluster)
        told.until_completed("longer_than_its_period", after=0)
        told.until_completed("each_second", after=0)
        assert told.run("jobs", "pause", "ledger.each_second", "--note", "disk full").returncode == 0
        time.sleep(3)  # ticks pass
        assert told.run("jobs", "resume", "ledger.each_second").returncode == 0
        resumed = time.time()
        told.until_completed("each_second", after=resumed)
        for controller in cluster.controllers:
            controller.kill()
        time.sleep(13)  # longer than what counts as missed
        for dead in list(cluster.controllers):
            cluster.restart_controller(dead)
        for controller in cluster.controllers:
            cluster.wait_ready(controller)
        told.until_completed("each_second", after=time.time())
        runner.kill()
        cluster.runners.remove(runner)
        time.sleep(13)  # longer than a tick waits for a runner
        cluster.start_runner(MODULE)
        told.until_completed("each_second", after=time.time())
        told.until_completed("longer_than_its_period", after=time.time() - 4)
        yield told


def test_the_audit_is_clean(story: Story) -> None:
    found = story.clean_audit()
    assert [found[kind] for kind in ("unaccounted", "duplicates", "early", "undue")] == [0, 0, 0, 0]
    assert found["findings"] == []
    assert {"overlap", "paused", "no_runner", "superseded", "missed_policy"} <= set(found["skipped"])
    assert found["ticks"] == found["executed"] + sum(found["skipped"].values())
    assert found["caught_up"] >= 1
    assert found["executed"] == found["on_time"] + found["late"] + found["caught_up"] + found["backfilled"]
    counted = story.cluster.cli("audit", "--until", found["until"])
    assert {name: counted[name] for name in ("ticks", "executed", "skipped")} == {
        name: found[name] for name in ("ticks", "executed", "skipped")
    }
    assert counted["walked"] == 0, "the counts agree"


@pytest.mark.parametrize(
    ("reason", "verb", "words"),
    [
        ("overlap", "longer_than_its_period", "of the tick"),
        ("paused", "each_second", "(“disk full”)"),
        ("superseded", "each_second", "was due as well, and ran in its place (execution "),
        ("missed_policy", "never_late", "its policy let it run no more (on_missed=skip)"),
        ("no_runner", "each_second", "no runner that had the job's deployment"),
    ],
)
def test_why_tells_each_reason(story: Story, reason: str, verb: str, words: str) -> None:
    verdict, text = story.why(verb, "--at", story.skip_of(reason, verb))
    assert (verdict, f"({reason})" in text) == ("skipped", True)
    assert words in text
    assert "decided that at" in text or "That was decided at" in text
    assert "Its next tick is" in text or "Which tick is next is decided when that ends." in text


def test_why_tells_of_runs_and_retries(story: Story) -> None:
    (row,) = story.fetch(
        "SELECT e.tick FROM cron_executions e JOIN cron_jobs j ON j.id = e.job_id "
        "WHERE j.verb = 'failing' AND e.attempt = 2 AND e.outcome = 'failed' ORDER BY e.tick LIMIT 1"
    )
    verdict, text = story.why("failing", "--at", row["tick"].isoformat())
    assert verdict == "executed"
    assert "failed with ValueError: no such account" in text
    assert "Attempt 2, execution " in text


def test_why_tells_what_never_ran_and_what_is_to_come(story: Story) -> None:
    verdict, text = story.why("yearly", "--at", "-10s")
    assert verdict == "not_due"
    assert "No tick of ledger.yearly was due at" in text
    assert "Its next tick is" in text
    done = story.run("why", "ledger.each_secnd")
    assert (done.returncode, "did you mean" in done.stderr.lower()) == (1, True)


def test_every_controller_says_the_same(story: Story) -> None:
    at = story.skip_of("no_runner", "each_second")
    answers = set()
    for controller in story.cluster.controllers:
        done = run(("why", "ledger.each_second", "--at", at, "--controllers", controller.grpc))
        assert done.returncode == 0, done.stderr
        answers.add("\n".join(done.stdout.splitlines()[:3]))
    assert len(answers) == 1


def test_a_deployment_that_is_removed_ends_what_waited(story: Story) -> None:
    """The last one of the story: nothing is left to run."""
    for runner in list(story.cluster.runners):
        runner.kill()
    waiting = (
        "SELECT 1 FROM cron_jobs WHERE verb = 'each_second' AND state = 'idle' AND next_tick < now() - interval '2 s'"
    )
    until("its ticks wait for a runner", lambda: story.fetch(waiting))
    (deployment,) = (row["key"] for row in story.fetch("SELECT key FROM deployments"))
    done = story.run("undeploy", deployment, "--yes")
    assert done.returncode == 0, done.stderr
    verdict, text = story.why("each_second", "--at", story.skip_of("deployment_removed", "each_second"))
    assert verdict == "skipped"
    assert "(deployment_removed): its deployment was removed before it could run" in text
    assert "It was removed at" in text
    until(  # lost runs are declared so
        lambda: story.run("audit", "--thorough").stdout,
        lambda: story.run("audit", "--thorough").returncode == 0,
    )
