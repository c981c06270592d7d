"""Style by numbers: the worst function and the worst file stay bounded, and nothing lies about dead."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 500
PRODUCTION = ("controller", "cronring", "schema", "sql")


def tracked() -> list[Path]:
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def sources() -> list[Path]:
    """All but what is generated."""
    made = {ROOT / "sql" / "parameters.py"}
    return [path for path in tracked() if path.suffix == ".py" and "_pb2" not in path.name and path not in made]


def functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def test_functions_fit_a_screen() -> None:
    long = [f"{path.relative_to(ROOT)}:{name} has {lines} lines"
            for path in sources() for name, lines in functions(path) if lines > FUNCTION_LINES_MAX]  # fmt: skip
    assert not long, f"at most {FUNCTION_LINES_MAX}: make two of it, each with a name that says what it does: {long}"


def test_files_have_one_reason_to_change() -> None:
    long = [
        f"{path.relative_to(ROOT)} has {count} lines"
        for path in sources()
        if (count := len(path.read_text().splitlines())) > FILE_LINES_MAX
    ]
    assert not long, f"at most {FILE_LINES_MAX}: move what changes for another reason into a file of its own: {long}"


def test_no_sql_in_python() -> None:
    statement = re.compile(r"""["'](SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH \w+ AS)\s""")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sources()
        if path.relative_to(ROOT).parts[0] in PRODUCTION
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if statement.search(line)
    ]
    assert not found, f"SQL lives in sql/*.sql: {found}"


def test_durations_for_people_have_one_style() -> None:
    """`{took_s:.1f} s`, `{ms} ms`, `{left:g}s`: schema/duration.py's `measured` and `format_duration` do that."""
    unit = re.compile(r"\{[^{}]*(:[^{}\"']*[gf]\} ?|\} )(ms|s|min|h|d)\b(?!=)")
    allowed = {
        "schema/duration.py",
        "cronring/webhooks.py",  # authors import it: stdlib only
    }
    found = [
        f"{name}:{number}"
        for path in sources()
        if (name := str(path.relative_to(ROOT))) not in allowed and name.split("/", maxsplit=1)[0] in PRODUCTION
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if unit.search(line)
    ]
    assert not found, found


@pytest.mark.parametrize("word", ["TODO", "FIXME", "XXX", "NotImplementedError"])
def test_nothing_is_left_for_later(word: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sources()
        if path.relative_to(ROOT).parts[0] in PRODUCTION
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(rf"\b{word}\b", line)
    ]
    assert not found, found


def test_what_types_are_not_asked_for_has_a_reason() -> None:
    bare = re.compile(r"# type: ignore\[[^\]]*\]\s*(# noqa: [A-Z0-9, ]+)?$")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sources()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if bare.search(line)
    ]
    assert not found, found


def test_no_paths_of_one_machine() -> None:
    machine = re.compile(r"/work/main|/root/\.pyenv|pypi-more")
    found = [
        str(path.relative_to(ROOT))
        for path in tracked()
        if path != Path(__file__).resolve() and machine.search(path.read_text(errors="replace"))
    ]
    assert not found, found


def test_no_benchmark_is_named_as_a_module_of_the_standard_library() -> None:
    """A script that is run by its path has its folder first in sys.path: bench/queue.py ended every asyncio there."""
    assert not [path.name for path in (ROOT / "bench").glob("*.py") if path.stem in sys.stdlib_module_names]
