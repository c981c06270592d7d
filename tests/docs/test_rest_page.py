"""Every line of docs/rest.md is typed, by curl, in the order of a reader, at a real controller with a runner."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from cronring.controller.api.rest.streams import BEAT_S
from cronring.protos.cronring.v1.events_pb2 import Event
from tests.docs.reading import ROOT, blocks, commands
from tests.support.cluster import Cluster, Process
from tests.support.waiting import until

PAGE: Final = "docs/rest.md"
HERE: Final = "http://127.0.0.1:7480"
EXECUTION: Final = "4711"
KEY: Final = "billing.close_day"
ENDLESS: Final = "-sN"  # what goes on until somebody ends it: its first line is enough


@pytest.fixture
def controller(cluster: Cluster) -> Process:
    """It has jobs, and one of them has run."""
    process = cluster.start_controller()
    cluster.start_runner(ROOT / "examples" / "billing.py")
    until(process.tail, lambda: KEY in {job["key"] for job in cluster.cli("jobs", "list")})
    return process


@pytest.fixture
def cluster(database_url: str, tmp_path: Path) -> Any:
    with Cluster(database_url, tmp_path) as found:
        yield found


def typed(line: str, controller: Process, execution: str) -> tuple[str, int]:
    """What it says, and the exit code: of a stream, its first line that says something."""
    here = line.replace(HERE, f"http://{controller.http}").replace(EXECUTION, execution)
    command = here.replace("curl ", "curl --fail-with-body --max-time 60 ", 1)
    with subprocess.Popen(["bash", "-c", f"exec {command}"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        if ENDLESS not in line:
            said = process.stdout.read()
            return said, process.wait()
        said = next(each for each in process.stdout if each.strip())
        process.kill()
        return said, 0


def test_every_line_does_what_its_page_says(controller: Process) -> None:
    lines = [command.text for command in commands(PAGE)]
    assert len(lines) > 15
    assert all(line.startswith("curl -s") and HERE in line for line in lines)
    trigger = f"http://{controller.http}/api/v1/cron/jobs/{KEY}/trigger"
    run = json.loads(subprocess.run(["curl", "-s", "--json", "{}", trigger], capture_output=True, check=True).stdout)
    assert run["execution_id"] != "0"
    for line in lines:
        said, code = typed(line, controller, run["execution_id"])
        assert code == 0, (line, said)
        assert said or "DELETE" in line, line
    events, _ = typed(f"curl -sN -H 'accept: text/event-stream' {HERE}/api/v1/events", controller, EXECUTION)
    assert events.startswith("id: ")


def test_the_page_has_every_event_and_how_often_one_beats() -> None:
    names = (ROOT / PAGE).read_text().partition("| event | what |")[2].partition("\n\n")[0]
    told = {name for row in names.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    kinds = {name.removeprefix("KIND_").lower() for name in Event.DESCRIPTOR.enum_types_by_name["Kind"].values_by_name}
    assert told == kinds - {"unspecified", "position"} | {"beat", "problem"}, "a position alone has no name"
    assert f"| `beat` | each {BEAT_S:.0f} seconds" in names


def test_what_the_page_shows_of_json_is_json() -> None:
    shown = [text for language, text in blocks(PAGE) if language == "json"]
    assert [json.loads(text)["status"] for text in shown] == [400]
