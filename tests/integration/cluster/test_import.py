"""`cronring jobs import` and `jobs delete --label` in real processes: thousands of lines, a death, and what it told."""

import json
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

from tests.integration.cluster.test_orphans import WITH
from tests.support.cluster import Cluster
from tests.support.waiting import until

LINES = 12_000
PATIENCE_S = 240  # with thousands of jobs, on a busy machine
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
    shown = cluster.ask("jobs", "delete", "--label", "batch=b", "--dry-run", "-o", "json")
    return int(json.loads(shown.stdout)["total"]) if shown.returncode == 0 else 0


def ready(cluster: Cluster) -> None:
    for _ in range(2):
        cluster.start_controller()
    cluster.start_runner(WITH)
    until("the module is deployed", lambda: cluster.cli("deployments", "list", "--active"), 120)


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
        until("it has come somewhere", kept.exists, 120)
        process.kill()
        process.wait()
    reached = json.loads(kept.read_text())["line"]
    assert 0 < reached < LINES
    cluster.controllers[0].kill()  # the other one has to do the rest
    done = cluster.ask("jobs", "import", "--stream", str(file), "-o", "json")
    assert done.returncode == 1, done.stderr
    assert f"going on behind line {reached:,}" in done.stderr
    told = json.loads(done.stdout)
    assert (told["lines"], told["failed"], told["made"] + told["unchanged"]) == (LINES, 3, LINES - 3)
    wrong = [number for number in WRONG if number > reached]
    assert [each["line"] for each in told["problems"]] == wrong
    assert all(f"{file}:{number}: " in done.stderr for number in wrong)
    assert not kept.exists()
    assert jobs_made(cluster) == LINES - 3
    again = cluster.ask("jobs", "import", "--stream", str(file), "-o", "json")
    counts = json.loads(again.stdout)
    assert (counts["made"], counts["unchanged"], counts["failed"]) == (0, LINES - 3, 3)
    few = cluster.ask("jobs", "delete", "--label", "batch=b", "--expect", "5", "--yes")
    assert (few.returncode, "5 are expected" in few.stderr) == (1, True)
    gone = cluster.ask("jobs", "delete", "--label", "batch=b", "--expect", str(LINES - 3), "--yes", "-o", "json")
    assert gone.returncode == 0, gone.stderr
    assert json.loads(gone.stdout)["done"] == LINES - 3
    assert jobs_made(cluster) == 0
    assert "clean" in cluster.ask("audit").stdout


def test_what_makes_a_whole_call_be_refused_is_told_of_its_line(cluster: Cluster, tmp_path: Path) -> None:
    """A text beyond its cap, more labels or more modules in one call than it may have."""
    ready(cluster)
    file = tmp_path / "jobs.ndjson"
    fine = json.loads(line(1))
    labels = {f"l{number}": "x" for number in range(60)}
    jobs = [fine | {"name": f"n{number}", "labels": labels} for number in range(1_500)]
    jobs[10] |= {"name": "x" * 500}
    jobs[20] |= {"payload": json.dumps("x" * 200_000)}
    jobs += [fine | {"verb": f"m{number}.run", "name": "one"} for number in range(120)]
    file.write_text("\n".join(map(json.dumps, jobs)))
    done = cluster.ask("jobs", "import", "--stream", str(file), "-o", "json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["made"], told["failed"]) == (1, 1_498, 122), done.stderr
    problems = {each["line"]: each["problem"] for each in told["problems"]}
    assert problems.keys() == {11, 21, *range(1_501, 1_621)}
    assert "500 characters" in problems[11]
    assert "no module 'm7' is active" in problems[1_508]
    whole = cluster.ask("jobs", "import", "--stream", str(file), "--all-or-nothing", "-o", "json")
    assert (whole.returncode, "has more than 80000 entries" in whole.stderr) == (1, True), whole.stderr
    file.write_text("\n".join(map(json.dumps, jobs[:15])))
    few = cluster.ask("jobs", "import", "--stream", str(file), "--all-or-nothing", "-o", "json")
    assert [each["line"] for each in json.loads(few.stdout)["problems"]] == [11], few.stderr
