"""python -m tests.support.chaos_run --minutes 10: a real cluster under faults, operators and a mixed load.

There are three controllers, each behind a link that breaks, three runners, and a PostgreSQL of its own. An operator in
another process gives orders over gRPC and by the command line. At the end everything is let rest, and `cronring audit`,
the judge of the journal and the judge of the orders say what came of it. Exit code 1 unless all three find nothing.
"""

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.support.chaos_faults import Chaos, Host, Site, Tell
from tests.support.chaos_links import Links
from tests.support.chaos_orders import judge_orders, read_orders, summary
from tests.support.cluster import Cluster, free_port
from tests.support.databases import running_server
from tests.support.judge import Circumstances, Verdict, judge

MODULES: Final = Path(__file__).parents[1] / "integration" / "cluster" / "modules"
MIXED: Final = MODULES / "mixed.py"
VERSIONS: Final = (MODULES / "versions_one" / "versions.py", MODULES / "versions_two" / "versions.py")
# Of mixed.py, for the judge. One that pauses itself when it fails is judged by the audit alone.
PERIODS_S: Final[Mapping[str, int]] = {
    "each_second": 1, "each_second_sync": 1, "never_late": 1, "longer_than_its_period": 2, "buffering": 2,
    "buffering_all": 3, "cut": 3, "beside": 1, "failing": 5, "long": 5, "finishing": 10, "spread": 3,
}  # fmt: skip
BESIDE: Final = {"beside": 3}
SETTLE_S: Final = 90.0  # what waits for a lost runner, a backoff, a long run or the refetch after one, has had its time
REST_S: Final = 5.0
TOLD_EVERY_S: Final = 15.0


@dataclass
class Outcome:
    """All lists empty: innocent."""

    audit: dict[str, Any] = field(default_factory=dict)
    audit_exit_code: int = -1
    verdict: Verdict = field(default_factory=Verdict)
    orders: list[str] = field(default_factory=list)
    faults: dict[str, int] = field(default_factory=dict)
    told: str = ""

    @property
    def clean(self) -> bool:
        return self.audit_exit_code == 0 and not self.audit["pending"] and not self.verdict.guilty() and not self.orders

    def __str__(self) -> str:
        audit = {name: value for name, value in self.audit.items() if name not in {"findings", "outcomes"}}
        return "\n".join(
            [
                f"faults: {', '.join(f'{name} {count}' for name, count in sorted(self.faults.items()))}",
                self.told,
                f"audit, exit code {self.audit_exit_code}: {json.dumps(audit)}",
                *(f"  {finding}" for finding in self.audit.get("findings", [])),
                f"judge: {self.verdict}",
                *(f"  {kind}: {found[:10]}" for kind, found in self.verdict.guilty().items()),
                *(f"  order: {problem}" for problem in self.orders[:20]),
            ]
        )


def run(seconds: float, seed: int, folder: Path, tell: Tell) -> Outcome:
    """Logs, the journal and the operator's notes are in `folder`. Raises AssertionError when the operator breaks."""
    with ExitStack() as stack:
        server = stack.enter_context(running_server("postgres18", durable=True))
        links = stack.enter_context(Links())
        environment = {"JOURNAL": str(folder / "journal"), "GRPC_ENABLE_FORK_SUPPORT": "0"}
        cluster = stack.enter_context(Cluster(server.url(server.create_database()), folder, environment))
        sites, hosts = start(cluster, links)
        chaos = Chaos(cluster, sites, hosts, seed, tell, server)
        operator = stack.enter_context(_operator(cluster, folder, seed))
        stack.callback(operator.kill)
        chaos.run(seconds, _watching(operator, folder, tell))
        tell("rest")
        operator.communicate(timeout=120)
        assert operator.returncode == 0, (folder / "operator.log").read_text()[-3_000:]
        return _judged(cluster, chaos, folder)


def start(cluster: Cluster, links: Links) -> tuple[list[Site], list[Host]]:
    """Runners host one version of the other module each; the third the first one's."""
    sites = []
    for _ in range(3):
        listen = f"127.0.0.1:{free_port()}"
        link = links.to(listen)
        sites.append(Site(cluster.start_controller_behind(listen, link.address), link))
    for site in sites:
        cluster.wait_ready(site.controller)
    hosts = []
    for number in range(3):
        files = (MIXED, VERSIONS[number % 2])
        hosts.append(Host(cluster.start_runner(*files), files))
    return sites, hosts


def _operator(cluster: Cluster, folder: Path, seed: int) -> "subprocess.Popen[bytes]":
    with (folder / "operator.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.support.chaos_operator", "--controllers", cluster.addresses,
             "--journal", str(folder / "orders"), "--seed", str(seed)],
            stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT, env=cluster.environment,
        )  # fmt: skip


def _watching(operator: "subprocess.Popen[bytes]", folder: Path, tell: Tell) -> Callable[[], None]:
    told_at = time.monotonic()

    def watch() -> None:
        nonlocal told_at
        assert operator.poll() is None, (folder / "operator.log").read_text()[-3_000:]
        if time.monotonic() - told_at >= TOLD_EVERY_S:
            told_at = time.monotonic()
            journal = folder / "journal"
            starts = journal.read_text().count('"start"') if journal.exists() else 0
            tell(f"{starts} runs so far; {summary(read_orders(folder / 'orders'))}")

    return watch


def _judged(cluster: Cluster, chaos: Chaos, folder: Path) -> Outcome:
    """Once nothing is to be blamed, or when everything has had its time."""
    for controller in cluster.controllers:
        cluster.wait_ready(controller)
    time.sleep(REST_S)  # the time in which nothing goes wrong is part of the model, too
    until, deadline = time.time(), time.monotonic() + SETTLE_S
    circumstances = Circumstances(chaos.deaths, chaos.absences, BESIDE, chaos.deaths_by_pid)
    while True:
        found = Outcome(faults=chaos.counts, told=summary(read_orders(folder / "orders")))
        found.verdict = asyncio.run(
            judge(cluster.database_url, PERIODS_S, until - REST_S, folder / "journal", circumstances)
        )
        found.orders = asyncio.run(judge_orders(cluster.database_url, folder / "orders"))
        found.audit_exit_code, found.audit = _audit(cluster, until - REST_S)
        if found.clean or time.monotonic() > deadline:
            return found
        time.sleep(1.0)  # a poll with a deadline


def _audit(cluster: Cluster, until: float) -> tuple[int, dict[str, Any]]:
    """By the command, of all ticks, each of them walked."""
    instant = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(until))
    done = cluster.ask("audit", "--thorough", "--until", instant, "-o", "json")
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--folder", type=Path, help="where logs are kept; by default nowhere, unless something fails")
    arguments = parser.parse_args()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="cronring-chaos-"))
    folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()

    def tell(line: str) -> None:
        sys.stdout.write(f"{time.monotonic() - began:7.1f} {line}\n")
        sys.stdout.flush()

    tell(f"seed {arguments.seed}, {arguments.minutes:g} minutes, logs in {folder}")
    outcome = run(arguments.minutes * 60, arguments.seed, folder, tell)
    tell(f"{outcome}\n{'clean' if outcome.clean else 'NOT CLEAN'}")
    return 0 if outcome.clean else 1


if __name__ == "__main__":
    sys.exit(main())
