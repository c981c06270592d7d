"""`cronring jobs import` and `jobs delete --label` in real processes: thousands of lines, a death, and what it told."""

import json
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

from tests.integration.cluster.test_orphans import WITH, cronring, until
from tests.support.cluster import Cluster

LINES = 12_000
WRONG = (7, 5_000, 11_999)


def line(number: int) -> str:
    job: dict[str, Any] = {
        "verb": "crawler.site", "name": f"n{number}", "cron": "5 4 1 1 *", "labels": {"batch": "b"},
        "payload": f"https://{number}.example",
    }  # fmt: skip
    if number in WRONG:
        job["cron"] = "61 * * * *"
    return json.dumps(job | {"payload": json.dumps(job["payload"])})


def jobs_made(cluster: Cluster) -> int:
    shown = cronring(cluster, "jobs", "delete", "--label", "batch=b", "--dry-run", "-o", "json")
    return int(json.loads(shown.stdout)["total"]) if shown.returncode == 0 else 0


def ready(cluster: Cluster) -> None:
    for _ in range(2):
        cluster.start_controller()
    cluster.start_runner(WITH)
    until("the module is deployed", lambda: cluster.cli("deployments", "list", "--active"))


def importing(cluster: Cluster, file: Path, output: IO[bytes]) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "cronring.cli.main", "jobs", "import", "--stream", str(file)]
    return subprocess.Popen(
        [*command, "--controllers", cluster.addresses], stdout=output, stderr=output, stdin=subprocess.DEVNULL,
        env=cluster.environment,
    )  # fmt: skip


def test_a_killed_import_goes_on_and_makes_each_job_once(cluster: Cluster, tmp_path: Path) -> None:
    ready(cluster)
    file, kept = tmp_path / "jobs.ndjson", tmp_path / "jobs.ndjson.position"
    file.write_text("\n".join(map(line, range(1, LINES + 1))))
    with (tmp_path / "import.log").open("wb") as output:
        process = importing(cluster, file, output)
        until("it has come somewhere", kept.exists)
        process.kill()
        process.wait()
    reached = json.loads(kept.read_text())["line"]
    assert 0 < reached < LINES
    cluster.controllers[0].kill()  # the other one has to do the rest
    done = cronring(cluster, "jobs", "import", "--stream", str(file), "-o", "json")
    assert done.returncode == 1, done.stderr
    assert f"going on behind line {reached:,}" in done.stderr
    told = json.loads(done.stdout)
    assert (told["lines"], told["failed"], told["made"] + told["unchanged"]) == (LINES, 3, LINES - 3)
    wrong = [number for number in WRONG if number > reached]
    assert [each["line"] for each in told["problems"]] == wrong
    assert all(f"{file}:{number}: " in done.stderr for number in wrong)
    assert not kept.exists()
    assert jobs_made(cluster) == LINES - 3
    again = cronring(cluster, "jobs", "import", "--stream", str(file), "-o", "json")
    counts = json.loads(again.stdout)
    assert (counts["made"], counts["unchanged"], counts["failed"]) == (0, LINES - 3, 3)
    few = cronring(cluster, "jobs", "delete", "--label", "batch=b", "--expect", "5", "--yes")
    assert (few.returncode, "5 are expected" in few.stderr) == (1, True)
    gone = cronring(cluster, "jobs", "delete", "--label", "batch=b", "--expect", str(LINES - 3), "--yes", "-o", "json")
    assert gone.returncode == 0, gone.stderr
    assert json.loads(gone.stdout)["done"] == LINES - 3
    assert jobs_made(cluster) == 0
    assert "clean" in cronring(cluster, "audit").stdout
