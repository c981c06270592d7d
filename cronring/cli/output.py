"""Rows for people and for programs: rich tables on a terminal, aligned columns in a pipe, JSON on request."""

import dataclasses
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Generic, NamedTuple, TypeVar

from cronring.cli.printing import say, say_source, screen
from cronring.schema.duration import measured
from cronring.schema.keys import qualified
from cronring.schema.visible import visible_json, visible_line

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


def milliseconds(value: float | None, *, signed: bool = False) -> str:
    """What was measured, in tables and pictures; `-` where nothing was. `signed`: as in `measured`."""
    return "-" if value is None else measured(value, signed=signed)


def jsonable(value: Any) -> Any:
    """Dataclasses and named tuples as objects, instants as ISO 8601 UTC."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: jsonable(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, datetime):
        return instant_text(value)
    if isinstance(value, Mapping):
        return {key: jsonable(each) for key, each in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return jsonable(value._asdict())
    if isinstance(value, list | tuple):
        return [jsonable(each) for each in value]
    return value


def quoted(text: str) -> str:
    """One word of a line, whatever is in it: in quotes, as in JSON."""
    return visible_json(json.dumps(text, ensure_ascii=False))


def print_json(value: Any) -> None:
    """One value, indented."""
    say_source(json.dumps(jsonable(value), indent=2, ensure_ascii=False))


def print_count(what: str, count: int, output: str) -> None:
    """How many there are of a list. `what`: their name in JSON."""
    print_json({what: count}) if output == "json" else say(f"{count:,}")


def print_json_line(value: Any) -> None:
    """One value on one line, at once."""
    say_source(json.dumps(jsonable(value), ensure_ascii=False, separators=(",", ":")))


def print_rows(columns: Sequence[Column[Row]], rows: Sequence[Row], nothing: str) -> None:
    """`nothing` goes to stderr where there is no row, so that pipes stay clean."""
    if not rows:
        say(nothing, err=True)
        return
    cells = [[visible_line(column.text(row)) for column in columns] for row in rows]
    if sys.stdout.isatty():
        _print_rich(columns, cells)
    else:
        for line in aligned([[column.heading.upper() for column in columns], *cells], [c.right for c in columns]):
            say(line)


def aligned(lines: Sequence[Sequence[str]], right: Sequence[bool]) -> Iterable[str]:
    """Columns two spaces apart, by the places that they take on a screen. Cells are visible lines."""
    widths = [max(map(_places, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = []
        for cell, width, to_right in zip(line, widths, right, strict=True):
            space = " " * (width - _places(cell))
            padded.append(space + cell if to_right else cell + space)
        yield "  ".join(padded).rstrip()


def _places(text: str) -> int:
    """That it takes on a screen: Chinese takes two a character, accents none."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # late, as most text is ASCII

    return cell_len(text)


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
    console = screen()
    console.width = max(console.width, Console(width=WIDTH_MAX).measure(table).maximum)
    console.print(table)


def print_fields(fields: Sequence[tuple[str, str]]) -> None:
    """One thing, a field on each line."""
    width = max(_places(name) for name, _ in fields)
    for name, value in fields:
        say(f"{name}{' ' * (width - _places(name))}  {value}")


def group_name(namespace: str, module: str) -> str:
    """A group as it is written: `billing`, `prod/billing`, `prod/`."""
    return qualified(namespace, module) if module else f"{namespace}/"
