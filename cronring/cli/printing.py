"""The one place where the command line prints: strangers' text is shown there, and obeyed by no terminal."""

import contextlib
import dataclasses
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any, Literal, TextIO, TypeVar, cast

import click

from cronring.controller.colours import are_colours_wanted
from cronring.schema.visible import VisibleStream, visible_block, visible_json, visible_line

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar
    from rich.console import Console

Value = TypeVar("Value")


def say(text: str = "", *, err: bool = False, colour: str | None = None) -> None:
    """One line: newlines in it are shown, so nobody's text looks like a line of ours. Write several by say_lines."""
    _write(_coloured(visible_line(text), fg=colour) if colour else visible_line(text), err=err)


def say_lines(lines: Iterable[str], *, err: bool = False) -> None:
    """Lines, one after the other."""
    for line in lines:
        say(line, err=err)


def say_block(text: str) -> None:
    """Text of several lines, set in: so none of them looks like one of ours."""
    for line in visible_block(text).removesuffix("\n").split("\n"):
        _write("  " + line, err=False)


def say_source(text: str) -> None:
    r"""A program, a schema or JSON, which stays what it means: in its strings such characters become \uXXXX."""
    _write(visible_json(text).removesuffix("\n"), err=False)


def say_failure(prefix: str, message: str, file: IO[Any]) -> None:
    """An error of one or more lines; behind a prefix those after the first are set in."""
    lines = visible_block(message).split("\n")
    if prefix:
        lines[1:] = [line if line.startswith("  ") else f"  {line}".rstrip() for line in lines[1:]]
    click.echo(_coloured(prefix, fg="red", bold=True) + "\n".join(lines), file=raw(file))


class OutputPrinter:
    """A verb's output to stdout, as it comes; with `colours` its colours are obeyed, and nothing else."""

    def __init__(self, *, colours: bool = False) -> None:
        self._colours = colours
        self._stream = VisibleStream(colours=colours)

    def feed(self, piece: str) -> None:
        self._put(self._stream.feed(piece))

    def end(self) -> None:
        """Whatever comes next begins without a colour."""
        self._put(self._stream.end())

    def _put(self, text: str) -> None:
        if text:
            # Colours that somebody asked for go into pipes, too.
            click.echo(text, nl=False, file=raw(sys.stdout), color=True if self._colours else None)


def _coloured(text: str, **style: Any) -> str:
    return click.style(text, **style) if are_colours_wanted() else text


def _write(text: str, *, err: bool) -> None:
    click.echo(text, file=raw(sys.stderr if err else sys.stdout))


@contextlib.contextmanager
def progress_bar(
    length: int, label: str, *, show_pos: bool = False, prints: bool = False
) -> Iterator["ProgressBar[int]"]:
    """On stderr, and only where somebody looks: into a pipe click would write a line for it.

    `prints`: lines go to stdout meanwhile, and no bar is drawn between them on one screen.
    """
    stream = cast(TextIO, raw(sys.stderr))
    hidden = not sys.stderr.isatty() or (prints and sys.stdout.isatty())
    shown = visible_line(label)
    with click.progressbar(length=length, label=shown, show_pos=show_pos, file=stream, hidden=hidden) as bar:
        yield bar


def screen() -> "Console":
    """Rich's console on stdout, where `[red]` is what somebody wrote. Feed it with `visible(...)`."""
    from rich.console import Console

    # Not rich's own `no_color`: it leaves bold and underlined text, and these are escapes, too.
    system: Literal["auto"] | None = "auto" if are_colours_wanted() else None
    return Console(file=raw(sys.stdout), highlight=False, markup=False, emoji=False, color_system=system)


def visible(value: Value) -> Value:
    """The same value with every string in it as one visible line: for pictures, which are laid out before printing."""
    return cast(Value, _visible(value))


def _visible(value: Any) -> Any:
    if isinstance(value, str):
        return visible_line(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [each.name for each in dataclasses.fields(value) if each.init]
        return dataclasses.replace(value, **{name: _visible(getattr(value, name)) for name in names})
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_visible, value))
    if isinstance(value, list | tuple):
        return type(value)(map(_visible, value))
    if isinstance(value, Mapping):
        return {_visible(key): _visible(each) for key, each in value.items()}
    return value


class _Guard:
    """A stream on which nothing is obeyed but newlines: what prints without us (click, tracebacks) prints on it."""

    def __init__(self, stream: IO[str]) -> None:
        self.guarded = stream

    def write(self, text: str) -> int:
        self.guarded.write(visible_block(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.guarded, name)


def guard_streams() -> None:
    """From here on stdout and stderr obey nothing, but for what is printed by this file. Once, by `main`."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None or isinstance(stream, _Guard):
            continue
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(errors="backslashreplace")  # a terminal that has no ä gets one that it can show
        setattr(sys, name, _Guard(stream))


def raw(stream: IO[Any]) -> IO[Any]:
    """What stands behind the guard, for text that is visible and may have colours of ours."""
    return stream.guarded if isinstance(stream, _Guard) else stream
