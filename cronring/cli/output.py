"""Rows for people and for programs: rich tables on a terminal, aligned columns in a pipe, JSON on request."""

import dataclasses
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Generic, NamedTuple, TypeVar

import click

Row = TypeVar("Row")

WIDTH_MAX: Final = 10_000  # of a table, in characters


class Column(NamedTuple, Generic[Row]):
    """A heading, and what a row says under it."""

    heading: str
    text: Callable[[Row], str]
    right: bool = False


def instant_text(moment: datetime | None) -> str | None:
    """ISO 8601 in UTC with Z; fractions only where there are any."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def short_instant(moment: datetime | None) -> str:
    """For tables: to the second, UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ") if moment is not None else "-"


def milliseconds(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value / 1000:,.2f} s" if abs(value) >= 10_000 else f"{value:.1f} ms"


def jsonable(value: Any) -> Any:
    """Dataclasses as objects, instants as ISO 8601 UTC."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: jsonable(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, datetime):
        return instant_text(value)
    if isinstance(value, Mapping):
        return {key: jsonable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(each) for each in value]
    return value


def print_json(value: Any) -> None:
    """One value, indented."""
    click.echo(json.dumps(jsonable(value), indent=2, ensure_ascii=False))


def print_json_line(value: Any) -> None:
    """One value on one line, at once."""
    click.echo(json.dumps(jsonable(value), ensure_ascii=False, separators=(",", ":")))


def print_rows(columns: Sequence[Column[Row]], rows: Sequence[Row], nothing: str) -> None:
    """`nothing` goes to stderr where there is no row, so that pipes stay clean."""
    if not rows:
        click.echo(nothing, err=True)
        return
    cells = [[column.text(row) for column in columns] for row in rows]
    if sys.stdout.isatty():
        _print_rich(columns, cells)
    else:
        for line in aligned([[column.heading.upper() for column in columns], *cells], [c.right for c in columns]):
            click.echo(line)


def aligned(lines: Sequence[Sequence[str]], right: Sequence[bool]) -> Iterable[str]:
    """Columns two spaces apart. A newline in a cell would break the line, so it becomes a space."""
    flat = [[cell.replace("\n", " ") for cell in line] for line in lines]
    widths = [max(len(cell) for cell in column) for column in zip(*flat, strict=True)]
    for line in flat:
        padded = [
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(line, widths, right, strict=True)
        ]
        yield "  ".join(padded).rstrip()


def _print_rich(columns: Sequence[Column[Any]], cells: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from cronring.cli.colours import style_of

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column.heading, justify="right" if column.right else "left", no_wrap=True)
    for line in cells:
        table.add_row(*(Text(cell, style=style_of(cell)) for cell in line))
    # On a narrow terminal the terminal wraps: keys and instants that are cut up can neither be read nor copied.
    console = Console()
    console.width = max(console.width, Console(width=WIDTH_MAX).measure(table).maximum)
    console.print(table)


def print_fields(fields: Sequence[tuple[str, str]]) -> None:
    """One thing, a field on each line."""
    width = max(len(name) for name, _ in fields)
    for name, value in fields:
        click.echo(f"{name.ljust(width)}  {value}")
