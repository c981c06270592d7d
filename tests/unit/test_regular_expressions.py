"""Every regular expression that reads strangers' text does so in a time that grows as the text does, and no faster."""

import ast
import importlib
import re
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("controller", "cronring", "protos", "schema")
ONCE: Final = frozenset({"match", "fullmatch", "search"})
EACH: Final = frozenset({"split", "sub", "subn", "findall", "finditer"})  # they go on after each match

LENGTH: Final = 1_000  # characters, of what is looked at first
SUSPECT_S: Final = 0.0005  # CPU, for as many: many times what is usual, and a tenth of what backtracking takes
TIMES: Final = 4
GROWTH_MAX: Final = 2.5 * TIMES  # TIMES squared is what it must not be
TRIES: Final = 10  # of suspects only
BEFORE: Final = (
    "", "a", "a=", "a=b", "1", "1-", "a/", '"', "*/", "every ", "at ", "09:00-", "[… ", "2026-11-23T09:00", "%",
)  # fmt: skip
PUMPED: Final = (
    " ", "\t", "\n", "0", "a", "A", "_", "-", ".", ",", ":", "/", "*", '"', "'", "\\", "%", "[", "(", "=", ";", "@",
    "+", "?", "\x1b[0m", "\x00", "\N{SNOWMAN}", "a.", "a,", "a ", "a=", "1,", "1-", "0:", "1 ", "- ", "to ", "a-", "//",
)  # fmt: skip
AFTER: Final = ("", "!", "\n!")


class Reading(NamedTuple):
    """One way in which a pattern is used."""

    module: str
    pattern: "re.Pattern[str]"
    way: str

    def took_s(self, text: str) -> float:
        """CPU, so that other processes count for nothing."""
        began_s = time.thread_time()
        if self.way in EACH:
            for _ in self.pattern.finditer(text):
                pass
        else:
            getattr(self.pattern, self.way)(text)
        return time.thread_time() - began_s

    def slow(self) -> str:
        """The first text that it takes more than its share of time for; empty: there is none."""
        for before, piece, after in product(BEFORE, PUMPED, AFTER):
            count = LENGTH // len(piece)
            if self.took_s(before + piece * count + after) < SUSPECT_S:
                continue
            texts = (before + piece * size + after for size in (count, count * TIMES))
            short_s, long_s = (min(self.took_s(text) for _ in range(TRIES)) for text in texts)
            if long_s > short_s * GROWTH_MAX:
                return f"{before!r} + {piece!r} * n + {after!r}: {short_s * 1e3:.1f} ms, then {long_s * 1e3:.1f} ms"
        return ""


def readings() -> list[Reading]:
    found = [
        reading
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if "_pb2" not in path.name
        for reading in of_module(path)
    ]
    return list(dict.fromkeys(found))


def import_name(path: Path) -> str:
    """Of a file in the tree: folders at its top are imported from within cronring."""
    parts = path.with_suffix("").parts
    return ".".join(parts if parts[0] == "cronring" else ("cronring", *parts))


def of_module(path: Path) -> Iterator[Reading]:
    """Of patterns that have a name, by how it is used there; of others where they stand."""
    source = path.read_text()
    if not re.search(r"\bre\.", source):
        return
    module = import_name(path.relative_to(ROOT))
    tree = ast.parse(source)
    used: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in ONCE | EACH:
            used.setdefault(ast.unparse(node.value), set()).add(node.attr)
        if isinstance(node, ast.Call) and ast.unparse(node.func).removeprefix("re.") in ONCE | EACH:
            yield from _inline(module, node)
    names: dict[str, Any] = vars(importlib.import_module(module))
    for name, value in names.items():
        if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
            for way in sorted(used.get(name, ONCE)):
                yield Reading(module, value, way)


def _inline(module: str, call: ast.Call) -> Iterator[Reading]:
    function = ast.unparse(call.func)
    pattern = call.args[0] if call.args else None
    if function.startswith("re.") and isinstance(pattern, ast.Constant) and isinstance(pattern.value, str):
        yield Reading(module, re.compile(pattern.value, _flags(call)), function.removeprefix("re."))


def _flags(call: ast.Call) -> int:
    words = re.findall(r"re\.([A-Z]+)", ast.unparse(call))
    return sum(int(re.RegexFlag[word]) for word in words)


READINGS: Final = readings()


def test_it_finds_them() -> None:
    found = {(each.module, each.pattern.pattern, each.way) for each in READINGS}
    assert {"cronring.schema.crontab", "cronring.schema.address", "cronring.controller.api.notifications"} <= {
        module for module, _, _ in found
    }
    assert ("cronring.schema.policy_read", r"[\s,]+", "split") in found, "one without a name"
    assert len(READINGS) > 80


def test_it_tells_what_is_quadratic() -> None:
    assert Reading("", re.compile(r"[a-z]+\s*=\s*(\S.*?)?\s*"), "fullmatch").slow()
    assert not Reading("", re.compile(r"[a-z]+"), "fullmatch").slow()


@pytest.mark.parametrize("reading", READINGS, ids=lambda each: f"{each.module}-{each.way}")
def test_time_grows_as_the_text(reading: Reading) -> None:
    assert not reading.slow()
