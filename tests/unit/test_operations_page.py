"""docs/operations.md names every alarm: log events of level warning and error, and the doctor's checks."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from cronring.cli.doctor.members import check_members
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.core.swim.beliefs import _LEVELS
from cronring.controller.store import doctor

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "operations.md").read_text()
ALARMS = {"WARNING", "ERROR"}
# Where an event is an argument of a function of ours: its name, and the argument's place.
PASSED_ON = {"within": 3}
# Events whose names are not literals where they are logged, and how they are made.
MADE = {"member_": [f"member_{status.name.lower()}" for status, level in _LEVELS.items() if level.name in ALARMS]}


def calls() -> Iterator[tuple[Path, ast.Call]]:
    for folder in ("controller", "cronring/runner"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call):
                    yield path, node


def literal(call: ast.Call, place: int) -> str | None:
    argument = call.args[place] if place < len(call.args) else None
    return argument.value if isinstance(argument, ast.Constant) and isinstance(argument.value, str) else None


def is_alarm(argument: ast.expr) -> bool:
    return (
        isinstance(argument, ast.Attribute) and argument.attr in ALARMS and ast.unparse(argument).startswith("Level.")
    )


def events() -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path, call in calls():
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        place = PASSED_ON.get(name)
        if name in {"warning", "error", "exception"}:
            place = 0
        elif call.args and is_alarm(call.args[0]):
            place = 1
        if place is not None and (event := literal(call, place)) is not None:
            found[event] = path
    return found | {event: Path("controller/core/swim/beliefs.py") for made in MADE.values() for event in made}


def test_every_alarm_of_the_log_is_on_the_page() -> None:
    found = {event: path for event, path in events().items() if re.fullmatch(r"[a-z_]+", event)}
    assert {
        "lease_lost",
        "contact_lost",
        "member_dead",
        "row_not_removed",
        "api_error",
        "module_refused",
    } <= found.keys()
    missing = {event: str(path) for event, path in found.items() if f"`{event}`" not in PAGE}
    assert not missing, f"say in docs/operations.md what they mean, and what to do: {missing}"


def test_the_page_names_no_event_that_is_not_there() -> None:
    found = events()
    alarms = PAGE.partition("## Alarms")[2].partition("### Metrics")[0]
    named = {event for line in alarms.splitlines() if line.startswith("| `")
             for event in re.findall(r"`([a-z_]+)`", line.split("|")[1])}  # fmt: skip
    assert named <= found.keys(), named - found.keys()


def test_every_check_of_the_doctor_is_on_the_page() -> None:
    of_database = [*doctor._CHECKS_OF_SERVER, *(check.name for check in doctor._checks(ClusterSettings()))]
    of_members = [finding.check for finding in check_members([], [], "0.1.0")]
    section = PAGE.partition("## What the doctor finds")[2]
    missing = [name for name in [*of_database, *of_members, "schema", "database"] if f"`{name}`" not in section]
    assert not missing, missing
