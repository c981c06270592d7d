"""What people may ask by the API they may ask by the command line: each call has a command, or a reason for none.

It reads the sources: a command asks `client.jobs.get(...)`, and that method, or what it is made of, asks `GetJob`.
tests/unit/client/test_faces.py holds the other face of the client to this one.
"""

import ast
import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from cronring.client import AsyncClient, consuming
from cronring.controller.api.policy import POLICY, Audience
from tests.tidy.test_tidy import ROOT

CLI: Final = ROOT / "cronring" / "cli"
_BY_FILTER: Final = "many jobs are named by a filter there, and ControlJobs does it"
# Calls without a command. All that is not for people is none of it: streams of runners, gossip, health.
WITHOUT: Final = {
    "ExplainSchedule": "`cronring explain` says the same by itself, without controllers",
    "UpdateJobs": f"`cronring jobs update`: {_BY_FILTER}",
    "DeleteJobs": f"`cronring jobs delete`: {_BY_FILTER}",
}


def calls() -> set[str]:
    """What people may call. The names alone are enough: no two services share one."""
    paths = [path for path, access in POLICY.items() if access.audience is Audience.PEOPLE]
    names = {path.rpartition("/")[2] for path in paths}
    assert len(names) == len(paths) > 100
    return names


def parts(kind: type) -> dict[str, set[str]]:
    """By method of the class, and of those that it is made from: the attributes that its body names."""
    found: dict[str, set[str]] = {}
    for each in reversed(kind.__mro__[:-1]):
        tree = ast.parse(inspect.getsource(each))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found[node.name] = set(attributes(node))
    return found


def attributes(tree: ast.AST) -> Iterator[str]:
    return (node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute))


def reached(method: str, of: Mapping[str, set[str]], seen: frozenset[str] = frozenset()) -> set[str]:
    """What the method names, and what those of its class name that it calls."""
    named = of.get(method, set())
    return named.union(*(reached(each, of, seen | {method}) for each in named & of.keys() - seen - {method}))


def methods() -> dict[tuple[str, str], set[str]]:
    """By group of the client and public method, which calls it makes."""
    client = AsyncClient(["127.0.0.1:1"])
    groups = {
        name.lstrip("_"): parts(type(group))
        for name, group in vars(client).items()
        if type(group).__name__.endswith("Calls")
    }
    known = calls()
    found = {
        (group, method): reached(method, of) & known
        for group, of in groups.items()
        for method in of
        if not method.startswith("_")
    }
    own = {"events": found["events", "watch"], "poll_events": found["events", "poll"]}
    consumed = set(attributes(ast.parse(inspect.getsource(consuming))))
    own["consume"] = set().union(*(found[each] for each in found if each[0] == "queues" and each[1] in consumed))
    return found | {("client", method): those for method, those in own.items()}


def asked(folder: Path = CLI) -> set[tuple[str, str]]:
    """What the commands name as `client.jobs.get` or `client.consume`: the last two of each chain."""
    found: set[tuple[str, str]] = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Attribute(attr=method, value=ast.Attribute(attr=group) | ast.Name(id=group)):
                    found.add((group, method))
    return found


def test_each_call_has_a_command() -> None:
    by_method, used = methods(), asked()
    assert by_method["jobs", "get"] == {"GetJob"}
    assert ("jobs", "get") in used
    commanded = set().union(*(those for method, those in by_method.items() if method in used))
    missing = calls() - commanded
    assert missing == WITHOUT.keys(), (
        f"give these a command, or a reason above: {sorted(missing - WITHOUT.keys())}; "
        f"these have one by now, take them off the list: {sorted(WITHOUT.keys() - missing)}"
    )


def test_each_call_has_a_public_method() -> None:
    assert calls() == set().union(*methods().values()), "give it a method in cronring.client, then `make protos`"
