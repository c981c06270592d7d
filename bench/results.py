"""How a measurement is kept: bench/results/NAME.json and NAME.md, and the same table on standard output."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

RESULTS: Final = Path(__file__).parent / "results"


class Part(NamedTuple):
    """One measurement of `make bench`. `about_s`: how long it takes on 2 cores.

    `measure`, with the defaults, gives a result that is JSON-ready: "name", "shape", "machine" (`bench.machine`),
    "figures", and whatever else its `table` needs. "figures" is a number for each name. Names end in their unit, and by
    these a run is compared with the one before.
    """

    name: str
    about_s: int
    measure: Callable[[], dict[str, Any]]
    table: Callable[[dict[str, Any]], str]


def head(result: dict[str, Any]) -> list[str]:
    """The lines above a table: what was measured, in which shape, where and when."""
    shape = ", ".join(f"{value} {name}" for name, value in result["shape"].items())
    machine = " | ".join(f"{name} {value}" for name, value in result["machine"].items())
    return [f"### {result['name']}: {shape}", "", machine, ""]


def rows(columns: Sequence[str], cells: Iterable[Sequence[object]]) -> list[str]:
    """A markdown table, line by line."""
    lines = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    return lines + ["| " + " | ".join(map(str, each)) + " |" for each in cells]


def ratios(figures: Mapping[str, float], before: Mapping[str, float]) -> dict[str, float]:
    """Each figure by the same one of the run before, where both have it, and neither is nothing."""
    both = [name for name in figures if figures[name] and before.get(name)]
    return {name: round(figures[name] / before[name], 2) for name in both}


def previous(name: str, folder: Path = RESULTS) -> dict[str, Any]:
    """What the last run that was kept gave; empty before the first."""
    file = folder / f"{name}.json"
    return dict(json.loads(file.read_text())) if file.exists() else {}


def compared(result: dict[str, Any], before: dict[str, Any]) -> list[str]:
    """Lines: this run's figures by those of the one before it."""
    if not before or before.get("shape") != result["shape"]:
        return []
    found = ratios(result.get("figures", {}), before.get("figures", {}))
    listed = ", ".join(f"{name} {ratio}" for name, ratio in found.items())
    return ["", f"By the run of {before['machine']['date']}: {listed}."] if found else []


def save(name: str, result: dict[str, Any], table: str, folder: Path = RESULTS) -> None:
    """Write both files."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    (folder / f"{name}.md").write_text(table)


def unlike(result: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    """In what a result is of another shape than the one before it: what was asked for, or what was found."""
    names = ["shape"] if result["shape"] != before.get("shape") else []
    for what, here, there in (
        ("keys", result, before),
        ("figures", result.get("figures", {}), before.get("figures", {})),
    ):
        if other := set(here) ^ set(there):
            names.append(f"{what} {', '.join(sorted(other))}")
    return names


def show(result: dict[str, Any], table: str, *, kept: bool) -> None:
    """What `--keep` of a benchmark of its own means: keep it, or only print its table."""
    if kept:
        keep(result, table)
    else:
        click.echo(table)


def keep(result: dict[str, Any], table: str, folder: Path = RESULTS) -> bool:
    """Print the table with the ratios to the run before, and write both files, named after the result.

    A kept result is never overwritten by one of another shape. A shortened trial would take away the figures that pages
    quote. Whoever means that removes the kept one first. Returns whether it is kept.
    """
    before = previous(result["name"], folder)
    table += "".join(f"{line}\n" for line in compared(result, before))
    click.echo(table)
    if before and (others := unlike(result, before)):
        told = f"Not kept: {result['name']}.json, which was kept before, differs in {'; '.join(others)}."
        click.echo(f"{told} If this shape is meant, remove that file and measure again.", err=True)
        return False
    save(result["name"], result, table, folder)
    return True
