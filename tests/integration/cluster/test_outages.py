"""PostgreSQL, all controllers, or a runner away in the middle of runs; judged by what the verbs noted themselves."""

import asyncio
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cluster import trial
from tests.support.cluster import Cluster
from tests.support.databases import PostgresServer, running_server
from tests.support.judge import JournalRun, Verdict, read_journal
from tests.support.looking import look
from tests.support.waiting import until

OUTLASTING_MODULE = Path(__file__).parent / "modules" / "outlasting.py"
LONG_PERIOD_S = 5
PERIODS_S = {
    "brief": 1, "stopping": LONG_PERIOD_S, "stopping_sync": LONG_PERIOD_S, "finishing": LONG_PERIOD_S,
}  # fmt: skip


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A durable one of its own, to be killed."""
    with running_server("postgres18", durable=True) as server:
        yield server


@pytest.fixture
def mortal_cluster(server: PostgresServer, tmp_path: Path, journal: Path) -> Iterator[Cluster]:
    url = server.url(server.create_database())
    with Cluster(url, tmp_path, {"JOURNAL": str(journal)}) as empty:
        yield empty


def start_outlasting(cluster: Cluster, journal: Path, controllers: int, runners: int) -> None:
    trial.start(cluster, controllers, runners, OUTLASTING_MODULE)
    trial.wait_for_runs(cluster, journal)


def wait_for(cluster: Cluster, journal: Path, what: str, verb: str, after: float = 0.0) -> JournalRun:
    """The first run of the verb that began after that instant."""
    runs = until(
        lambda: "\n".join([*(p.tail() for p in cluster.controllers + cluster.runners), what]),
        lambda: [run for run in read_journal(journal) if run.verb == verb and run.started_at > after],
    )
    return min(runs, key=lambda run: run.started_at)


def outlasting_verdict(cluster: Cluster, journal: Path) -> Verdict:
    """As `trial.verdict_when_settled`, for the long verbs; runs that still go on have a tick that is booked."""
    verdict = trial.verdict_when_settled(cluster, journal, [], PERIODS_S, settle_s=15.0)
    print(verdict)
    return verdict


def outcomes(cluster: Cluster) -> dict[int, str | None]:
    async def fetch() -> dict[int, str | None]:
        connection = await look(cluster.database_url)
        try:
            return {
                row["id"]: row["outcome"] for row in await connection.fetch("SELECT id, outcome FROM cron_executions")
            }
        finally:
            await connection.close()

    return asyncio.run(fetch())


def wait_for_outcome(cluster: Cluster, run: JournalRun, seconds: float) -> str:
    return until(f"the outcome of {run}", lambda: outcomes(cluster)[run.execution_id], seconds)


def restart_all(cluster: Cluster) -> None:
    """New controllers at the addresses of the old ones, as a supervisor would."""
    for dead in list(cluster.controllers):
        cluster.restart_controller(dead)
    for controller in cluster.controllers:
        cluster.wait_ready(controller)


def test_results_that_come_while_postgres_is_crashed_are_kept(
    mortal_cluster: Cluster, server: PostgresServer, journal: Path
) -> None:
    trial.start(mortal_cluster, controllers=3, runners=1)
    trial.wait_for_runs(mortal_cluster, journal, at_least=10)
    run = wait_for(mortal_cluster, journal, "a long run", "longer_than_its_period", after=time.time())
    server.kill()
    time.sleep(10)  # longer than a runner's fence, and than controllers' leases
    server.start()
    back_at = time.time()
    assert read_journal(journal)[-1].started_at < back_at, "nothing runs without having been claimed"
    first = wait_for(mortal_cluster, journal, "ticks go on", "each_second", after=back_at)
    assert first.started_at < back_at + 3.0
    verdict = trial.verdict_when_settled(mortal_cluster, journal, [])
    print(verdict)
    assert verdict.guilty() == {}
    assert wait_for_outcome(mortal_cluster, run, 5) == "completed", "it ended while PostgreSQL was away"
    assert verdict.skipped["superseded"] >= 2 * 7, "ticks that passed meanwhile, but for the latest"
    assert "lost" not in verdict.outcomes


def test_runs_go_on_while_postgres_hangs(mortal_cluster: Cluster, server: PostgresServer, journal: Path) -> None:
    start_outlasting(mortal_cluster, journal, controllers=3, runners=1)
    runs = [wait_for(mortal_cluster, journal, "a long run", verb) for verb in ("stopping", "stopping_sync")]
    server.freeze()
    try:
        time.sleep(10)  # longer than a runner's fence, and than controllers' leases
    finally:
        server.thaw()
    back_at = time.time()
    assert wait_for(mortal_cluster, journal, "ticks go on", "brief", after=back_at).started_at < back_at + 3.0
    assert [wait_for_outcome(mortal_cluster, run, 15) for run in runs] == ["completed"] * 2, "nobody could be lost"
    verdict = outlasting_verdict(mortal_cluster, journal)
    assert verdict.guilty() == {}
    assert "no_runner" not in verdict.skipped, "the runner was there all the time"
    assert "controller_disconnected" not in mortal_cluster.runners[0].log.read_text()


def test_runs_survive_all_controllers_or_are_fenced(cluster: Cluster, journal: Path) -> None:
    start_outlasting(cluster, journal, controllers=3, runners=1)
    stopping = wait_for(cluster, journal, "a run to be stopped", "stopping")
    sync = wait_for(cluster, journal, "a sync run to be stopped", "stopping_sync")
    finishing = wait_for(cluster, journal, "a run to be finished", "finishing")
    died = time.time()
    for controller in cluster.controllers:
        controller.kill()
    time.sleep(10)  # beyond the runner's fence
    restart_all(cluster)
    for run in (stopping, sync):
        assert wait_for_outcome(cluster, run, 5) in {"cancelled", "lost"}
    verdict = outlasting_verdict(cluster, journal)
    assert verdict.guilty() == {}
    runs = {run.execution_id: run for run in read_journal(journal)}
    for run in (stopping, sync):
        seen_at = runs[run.execution_id].seen_at
        assert seen_at is not None
        assert seen_at < died + 8.5, "stopped at the fence"
    seen_at = runs[finishing.execution_id].seen_at
    assert seen_at is not None
    assert seen_at > died + 10, "on_disconnect=finish runs on"
    assert outcomes(cluster)[finishing.execution_id] in {None, "completed"}


def test_runs_go_on_when_all_controllers_are_soon_back(cluster: Cluster, journal: Path) -> None:
    # So that "soon" is longer than three processes take to start on a busy machine.
    cluster.environment |= {"CRONRING_RUNNER_FENCE": "14s", "CRONRING_RUNNER_LOST_AFTER": "14750ms"}
    start_outlasting(cluster, journal, controllers=3, runners=1)
    long_runs = [wait_for(cluster, journal, "a long run", verb) for verb in ("stopping", "stopping_sync", "finishing")]
    for controller in cluster.controllers:
        controller.kill()
    time.sleep(2)
    restart_all(cluster)
    wait_for(cluster, journal, "ticks go on", "brief", after=time.time())
    verdict = outlasting_verdict(cluster, journal)
    assert verdict.guilty() == {}
    assert [wait_for_outcome(cluster, run, 20) for run in long_runs] == ["completed"] * 3, "they ran on to their ends"
    began = [run.execution_id for run in read_journal(journal)]
    assert all(began.count(run.execution_id) == 1 for run in long_runs)


def test_a_runner_that_stood_still_runs_nothing_beside_its_successor(cluster: Cluster, journal: Path) -> None:
    start_outlasting(cluster, journal, controllers=2, runners=1)
    stopping = wait_for(cluster, journal, "a run to be stopped", "stopping")
    sync = wait_for(cluster, journal, "a sync run to be stopped", "stopping_sync")
    zombie = cluster.runners[0]
    cluster.start_runner(OUTLASTING_MODULE)
    zombie.send(signal.SIGSTOP)
    try:
        for run in (stopping, sync):
            assert wait_for_outcome(cluster, run, 15) == "lost"
            wait_for(cluster, journal, "its successor", run.verb, after=run.started_at)
    finally:
        zombie.send(signal.SIGCONT)
    verdict = outlasting_verdict(cluster, journal)
    assert verdict.guilty() == {}
