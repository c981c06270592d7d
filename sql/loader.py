"""Named statements of `sql/queries/*.sql`, and what their parameters are called (docs/decisions/0060).

A parameter is written by its name, `:job_ids`. PostgreSQL gets `$1`, `$2`... in the order of first appearance.
`:payload?` may be null, and what is in `:next_ticks[?]` may be: a name is marked where it appears first.
"""

import functools
import re
from importlib import resources
from typing import Final, NamedTuple

_STATEMENT: Final = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)
# What is read over as a whole, in the order of alternatives; then a parameter. A slice (`[1:n]`) has none.
_TOKEN: Final = re.compile(
    r"""
    --[^\n]* | /\*.*?\*/ | '(?:[^']|'')*' | "(?:[^"]|"")*" | \$(?P<tag>[A-Za-z_]*)\$.*?\$(?P=tag)\$ | ::
    | (?<![\w)\]]):(?P<name>\w+)(?P<mark>\?|\[\?\])?
    | \$(?P<number>\d+)
    """,
    re.DOTALL | re.VERBOSE,
)
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


class Parameter(NamedTuple):
    """`mark`: "?" if it may be null, "[?]" if its elements may be."""

    name: str
    mark: str = ""


class Loaded(NamedTuple):
    """`text`: as PostgreSQL takes it. `parameters`: in the order of `$1`, `$2`..."""

    text: str
    parameters: tuple[Parameter, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(parameter.name for parameter in self.parameters)


def numbered(written: str) -> Loaded:
    """A statement whose parameters are written by name. Raises ValueError for a name that is none, or a `$1`."""
    marks: dict[str, str] = {}
    numbers: dict[str, str] = {}

    def number(token: re.Match[str]) -> str:
        if token["number"] is not None:
            raise ValueError(f"{token[0]}: parameters have names")
        name, mark = token["name"], token["mark"] or ""
        if name is None:
            return token[0]
        if not _NAME.fullmatch(name):
            raise ValueError(f":{name}: names of parameters are lower_case")
        if mark and name in marks and marks[name] != mark:
            raise ValueError(f":{name}{mark}: a parameter is marked where it appears first")
        marks.setdefault(name, mark)
        return numbers.setdefault(name, f"${len(marks)}")

    text = _TOKEN.sub(number, written)
    return Loaded(text, tuple(Parameter(name, mark) for name, mark in marks.items()))


@functools.cache
def loaded() -> dict[str, Loaded]:
    """Every statement by its `-- name:`. Raises ValueError when two share a name, or one is not written so."""
    found: dict[str, Loaded] = {}
    for file in sorted(resources.files(__package__).joinpath("queries").iterdir(), key=lambda file: file.name):
        _, *parts = _STATEMENT.split(file.read_text(encoding="utf-8"))
        for name, written in zip(parts[::2], parts[1::2], strict=True):
            if name in found:
                raise ValueError(f"two statements are named {name}; rename the one in {file.name}")
            try:
                found[name] = numbered(written.strip())
            except ValueError as error:
                raise ValueError(f"{name} in {file.name}: {error}") from error
    return found
