"""`cronring drill kill-owner --kill` on a `cronring dev`: it kills the right process, and no other."""

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil

from tests.acceptance.dev import DEMO, ROOT, Dev, fields
from tests.acceptance.test_demo_healing import is_completed


def drill(dev: Dev, *arguments: str) -> "subprocess.CompletedProcess[str]":
    started = [fields(line) for line in dev.lines if " process_started " in line]
    addresses = ",".join(each["grpc"] for each in started if "grpc" in each)
    command = [sys.executable, "-m", "cronring.cli.main", "drill", "kill-owner", *arguments, "--controllers", addresses]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CRONRING_")}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=100, check=False, cwd=ROOT, env=environment,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


def drill_until_begun(dev: Dev, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """On a busy machine members come and go; a drill that finds another ring than it has planned for does nothing."""
    for _ in range(5):
        done = drill(dev, *arguments)
        if "Nothing was done; start again" not in done.stderr:
            break
    return done


def test_it_kills_the_primary_and_others_take_over(folder: Path) -> None:
    with Dev([str(DEMO), "--for", "5m"], folder) as dev:
        dev.wait_for(is_completed)
        asked = drill(dev, "--kill", "--for", "6s")
        assert (asked.returncode, "give it with --yes" in asked.stderr) == (2, True), "nobody agreed"
        done = drill_until_begun(dev, "--kill", "--for", "6s", "--yes", "-o", "json")
        assert done.stdout, done.stderr
        report = json.loads(done.stdout)
        died = fields(dev.wait_for(lambda line: " process_ended " in line))
        assert report["controller"].startswith(died["name"])
        assert not psutil.pid_exists(dev.pid_of(died["name"]))
        assert sum(psutil.pid_exists(dev.pid_of(f"controller-{number}")) for number in (1, 2, 3)) == 2
        assert f"process {died['pid']} is killed" in done.stderr
        assert (report["killed"], report["lost"], report["duplicates"], report["undecided"]) == (True, 0, 0, [])
        assert report["taken_over"]["ticks"] >= 1
        assert (done.returncode, report["held"]) == (0 if report["held"] else 1, not report["late"]), report["verdict"]
