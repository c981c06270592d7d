"""`cronring doctor` on one real cluster, on which everything is broken in turn: it names what, and nothing else."""

import asyncio
import json
import platform
import re
import shutil
import signal
import time
import urllib.request
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from cronring.controller.runtime.help import HELP
from cronring.schema.zone import zone_data_version
from tests.support.cluster import Cluster, Process
from tests.support.databases import PostgresServer, run_coroutine, running_server
from tests.support.looking import look
from tests.support.programs import run
from tests.unit.shell.test_metrics_help import says_something

# Monotonic time is not a clock that anybody sets.
FAKETIME = ("env", "DONT_FAKE_MONOTONIC=1", "faketime", "-f")
MODULES = Path(__file__).parent / "modules"
PAGE = Path(__file__).resolve().parents[3] / "docs" / "operations.md"
WELL_S = 100.0  # 10 on a quiet machine: a stopped controller that comes back is on everybody's ring by then

Findings = dict[str, dict[str, str]]


class Place(NamedTuple):
    server: PostgresServer
    database: str
    cluster: Cluster

    @property
    def url(self) -> str:
        return self.server.url(self.database)

    def doctor(self, *arguments: str) -> tuple[int, Findings]:
        """Its exit code, and its findings by check."""
        done = run(("doctor", *arguments, "-o", "json"))
        assert done.stderr == "", done.stderr
        return done.returncode, {finding["check"]: finding for finding in json.loads(done.stdout)["findings"]}

    def by_controllers(self) -> tuple[int, Findings]:
        """Told one address; it asks them all."""
        return self.doctor("--controllers", self.cluster.controllers[0].grpc)

    def by_database(self) -> tuple[int, Findings]:
        return self.doctor("--database-url", self.url)

    def execute(self, statement: str) -> None:
        self.server.execute(statement, self.database)


def until(ask: Callable[[], tuple[int, Findings]], holds: Callable[[Findings], bool]) -> tuple[int, Findings]:
    deadline = time.monotonic() + WELL_S
    while True:
        code, findings = ask()
        if holds(findings):
            return code, findings
        assert time.monotonic() < deadline, ill(findings)


def ill(findings: Findings) -> dict[str, dict[str, str]]:
    return {name: finding for name, finding in findings.items() if finding["verdict"] != "ok"}


def is_well(findings: Findings) -> bool:
    return not ill(findings)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with running_server("postgres18", durable=True) as server:
        database = server.create_database()
        with Cluster(server.url(database), tmp_path_factory.mktemp("doctor")) as cluster:
            processes = [cluster.start_controller(wait=False) for _ in range(3)]
            for process in processes:
                cluster.wait_ready(process)
            cluster.start_runner(MODULES / "steady.py")
            place = Place(server, database, cluster)
            until(place.by_controllers, is_well)
            yield place


def test_a_healthy_cluster_is_all_ok_from_both_sides(place: Place) -> None:
    code, by_controllers = place.by_controllers()
    assert (code, ill(by_controllers)) == (0, {})
    assert by_controllers["controllers"]["seen"].startswith("3 answered: ")
    assert by_controllers["peers"]["seen"] == "each reaches each (6 ways)"
    code, by_database = place.by_database()
    assert (code, ill(by_database)) == (0, {})
    assert by_database.keys() == by_controllers.keys()


# A controller without certificates has none. tests/docs/test_security_page.py reads the metrics of one with them.
OF_CERTIFICATES = {
    "secrets_locked", "secrets_on_other_keys", "secrets_stored",  # of controllers with a key
    "certificate_own_expires_seconds", "certificate_public_expires_seconds", "issuer_keys_age_seconds",
}  # fmt: skip


def test_the_page_on_operations_names_metrics_that_are_there(place: Place) -> None:
    with urllib.request.urlopen(f"http://{place.cluster.controllers[0].http}/metrics", timeout=60) as answer:
        shown = set(re.findall(r"^# TYPE (\w+)", answer.read().decode(), re.MULTILINE))
    named = set(re.findall(r"cronring_[a-z_]*[a-z]", PAGE.read_text().partition("### Metrics")[2].partition("## ")[0]))
    assert len(named) > 10
    assert named - {f"cronring_{name}" for name in OF_CERTIFICATES} <= shown, named - shown


def test_each_metric_says_what_it_counts(place: Place) -> None:
    with urllib.request.urlopen(f"http://{place.cluster.controllers[0].http}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    helps = dict(re.findall(r"^# HELP (\w+) (.*)$", text, re.MULTILINE))
    assert {name for name in helps if not says_something(name, helps[name])} == set()
    named = {name.removeprefix("cronring_").removesuffix("_total").removesuffix("_info") for name in helps}
    assert HELP.keys() - OF_CERTIFICATES <= named, HELP.keys() - named
    (build,) = re.findall(r"^cronring_build_info{(.*)} 1.0$", text, re.MULTILINE)
    labels = dict(re.findall(r'(\w+)="([^"]*)"', build))
    assert labels == {
        "version": metadata.version("cronring"), "python": platform.python_version(), "tzdata": zone_data_version(),
        "postgres": labels["postgres"],
    }  # fmt: skip
    assert re.fullmatch(r"18\.\d+", labels["postgres"])
    assert {"process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds", "python_info"} <= {*helps}


def test_a_missing_index_is_made_anew_by_what_the_doctor_says(place: Place) -> None:
    place.execute("DROP INDEX cron_skips_job")
    code, findings = place.by_controllers()
    assert code == 1
    assert ill(findings).keys() == {"indexes"}
    assert findings["indexes"]["seen"] == "index cron_skips_job of cron_skips is missing"
    place.execute(findings["indexes"]["advice"])
    assert place.by_controllers()[0] == 0


def test_settings_of_the_database_that_do_harm(place: Place) -> None:
    harmful = {
        "statement_timeout = '50ms'": "timeouts",
        "synchronous_commit = off": "durability",
        "default_transaction_isolation = 'repeatable read'": "transaction isolation",
    }
    for setting in harmful:
        place.execute(f"ALTER DATABASE {place.database} SET {setting}")
    try:
        code, findings = place.by_controllers()
    finally:
        place.execute(f"ALTER DATABASE {place.database} RESET ALL")
    assert (code, set(ill(findings))) == (1, set(harmful.values()))
    for setting, check in harmful.items():
        name = setting.partition(" ")[0]
        assert name in findings[check]["seen"]
        assert f"SET {name}" in findings[check]["advice"]


async def hold(url: str, ask: Callable[[], tuple[int, Findings]]) -> tuple[int, Findings, int]:
    """Lock the jobs and do nothing, until the doctor has seen it; its advice ends the session."""
    connection = await look(url)
    try:
        pid: int = connection.get_server_pid()
        await connection.execute("BEGIN; LOCK TABLE cron_jobs IN EXCLUSIVE MODE")
        named = f"pid {pid} "
        code, findings = await asyncio.to_thread(until, ask, lambda seen: named in seen["open transactions"]["seen"])
        return code, findings, pid
    finally:
        connection.terminate()


def test_a_session_that_is_idle_in_a_transaction_and_blocks_claims(place: Place) -> None:
    code, findings, pid = run_coroutine(hold(place.url, place.by_database))
    assert code == 1
    transactions = findings["open transactions"]
    assert transactions["verdict"] == "problem"
    assert re.search(
        rf"pid {pid} \(postgres, .*\) blocks \d+ sessions .* holds locks on cron_jobs", transactions["seen"]
    )
    assert f"pg_terminate_backend({pid})" in transactions["advice"]


def test_a_module_without_a_runner(place: Place) -> None:
    place.cluster.cli("deploy", str(MODULES / "deserted.py"))
    try:
        code, findings = place.by_controllers()
    finally:
        place.cluster.cli("undeploy", "deserted", "--yes")
    assert code == 1
    assert re.match(r"deserted@\S+ has no runner: none of its 1 jobs runs", findings["deployments"]["seen"])
    assert set(ill(findings)) == {"deployments"}


def test_a_controller_that_stands_still(place: Place) -> None:
    stopped = place.cluster.controllers[2]
    stopped.send(signal.SIGSTOP)
    try:
        code, first = place.by_controllers()
        assert code == 1
        assert stopped.grpc in first["controllers"]["seen"]
        _, later = until(place.by_controllers, lambda seen: seen["leases"]["verdict"] == "warning")
        assert stopped.grpc in later["leases"]["seen"]
        assert "hold it for dead" in later["controllers"]["seen"]
    finally:
        stopped.send(signal.SIGCONT)
    until(place.by_controllers, is_well)


@pytest.mark.skipif(shutil.which("faketime") is None, reason="needs the `faketime` program (Debian: faketime)")
def test_a_controller_with_other_settings_and_another_clock(place: Place) -> None:
    odd = place.cluster.start_controller("--backup-delay", "700ms", wrapper=(*FAKETIME, "+5s"))
    try:
        code, findings = until(place.by_controllers, lambda seen: seen["controllers"]["seen"].startswith("4 "))
        assert code == 1
        assert findings["settings"]["seen"].startswith("backup_delay_ms differs")
        assert "--backup-delay" in findings["settings"]["advice"]
        assert findings["clocks"]["verdict"] == "warning"
        assert re.search(r"is [45](\.\d+)?s off PostgreSQL's", findings["clocks"]["seen"])
    finally:
        # `faketime` stays beside what it started, and passes no signal on.
        for process in psutil.Process(odd.pid).children(recursive=True):
            process.terminate()
        odd.popen.wait(timeout=60)
        place.cluster.controllers.remove(odd)


def test_without_postgres_controllers_still_answer(place: Place) -> None:
    place.server.stop()
    try:
        code, findings = until(place.by_controllers, lambda seen: seen["controllers' leases"]["verdict"] == "problem")
        assert code == 1
        assert findings["database"]["verdict"] == "problem"
        assert findings["ring"]["verdict"] == "ok"
        assert findings["controllers"]["verdict"] == "ok"
    finally:
        place.server.start()
    until(place.by_controllers, is_well)


def test_without_controllers_the_database_is_checked_and_without_both_nothing_is(place: Place) -> None:
    def kill(process: Process) -> None:
        process.kill()

    controllers, nobody = list(place.cluster.controllers), place.cluster.controllers[0].grpc
    for controller in controllers:
        kill(controller)
    code, findings = until(place.by_database, lambda seen: seen["leases"]["verdict"] == "problem")
    assert code == 1
    assert findings["controllers"]["verdict"] == "problem"
    assert findings["leases"]["seen"].startswith("no controller holds a lease")
    assert findings["indexes"]["verdict"] == "ok"
    code, findings = place.doctor("--controllers", nobody)
    assert code == 3
    assert nobody in findings["controllers"]["seen"]
    place.server.stop()
    try:
        assert place.by_database()[0] == 3
    finally:
        place.server.start()
