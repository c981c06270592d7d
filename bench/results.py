"""How a measurement is kept: bench/results/NAME.json and NAME.md, and the same table on standard output."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import click

RESULTS: Final = Path(__file__).parent / "results"


def head(result: dict[str, Any]) -> list[str]:
    """The lines above a table: what was measured, in which shape, where and when."""
    shape = ", ".join(f"{value} {name}" for name, value in result["shape"].items())
    machine = " | ".join(f"{name} {value}" for name, value in result["machine"].items())
    return [f"### {result['name']}: {shape}", "", machine, ""]


def rows(columns: Sequence[str], cells: Iterable[Sequence[object]]) -> list[str]:
    """A markdown table, line by line."""
    lines = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    return lines + ["| " + " | ".join(map(str, each)) + " |" for each in cells]


def save(name: str, result: dict[str, Any], table: str, folder: Path = RESULTS) -> None:
    """Write both files."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    (folder / f"{name}.md").write_text(table)


def keep(result: dict[str, Any], table: str, folder: Path = RESULTS) -> None:
    """Write both files, named after the result, and print the table."""
    save(result["name"], result, table, folder)
    click.echo(table)
