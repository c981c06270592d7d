"""What a change of versions does to jobs: shown beforehand, asked about, told afterwards."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import click

from cronring.cli.consent import LOOK_FIRST, confirm
from cronring.cli.output import jsonable, print_json
from cronring.cli.printing import say, say_lines
from cronring.schema.visible import visible_line

Done = TypeVar("Done")
Command = TypeVar("Command", bound=Callable[..., Any])
KEYS_SHOWN: Final = 10  # of each kind; -o json has all
KEYS_ASKED: Final = 3


class Changes(NamedTuple):
    """Keys of jobs. `orphaned` and `back` were made by `jobs create`; so was `misfit`, each with why it is one."""

    added: Sequence[str] = ()
    removed: Sequence[str] = ()
    orphaned: Sequence[str] = ()
    back: Sequence[str] = ()
    carried_over: Sequence[str] = ()
    misfit: Sequence[str] = ()

    @property
    def lines(self) -> list[str]:
        words = ("added", "removed", "orphaned", "back", "carried over", "payload no longer fits")
        named = zip(words, self, strict=True)
        return [line for word, keys in named for line in _listed(word, keys)]


def consent_options(command: Command) -> Command:
    for each in (
        click.option("--dry-run", is_flag=True, help="Only say what would become of its jobs."),
        click.option("--yes", is_flag=True, help="Don't ask before jobs are removed, or orphaned."),
    ):
        command = each(command)
    return command


def with_consent(do: Callable[[bool], Done], changes: Callable[[Done], Changes], *, dry_run: bool, yes: bool) -> Done:
    """What `do` did, or (`dry_run`) would do; `do` takes whether it is to be dry.

    Where declared jobs would be removed, or others orphaned, somebody is asked first. Raises click.Abort for a no, and
    click.UsageError where there is nobody to ask.
    """
    if dry_run or not yes:
        would = do(True)
        if dry_run:
            return would
        _confirm(changes(would))
    return do(False)


def tell(done: object, lines: Sequence[str], output: str, *, dry_run: bool) -> None:
    """`done`: all of it, for JSON; `lines`: in words."""
    if output == "json":
        print_json(jsonable(done) | {"dry_run": dry_run})
        return
    say_lines(lines)
    if dry_run:
        say("nothing was changed: it was a dry run", err=True)


def _confirm(would: Changes) -> None:
    lost = []
    if would.removed:
        lost.append(f"{_counted(would.removed, 'declared job')} would be removed ({_first(would.removed)})")
    if would.orphaned:
        lost.append(
            f"{_counted(would.orphaned, 'job')} made by hand would be orphaned, and wait for a version with that verb "
            f"({_first(would.orphaned)})"
        )
    if lost:
        confirm(lost, LOOK_FIRST)


def _counted(keys: Sequence[str], noun: str) -> str:
    return f"{len(keys):,} {noun}{'' if len(keys) == 1 else 's'}"


def _first(keys: Sequence[str]) -> str:
    return ", ".join(map(visible_line, keys[:KEYS_ASKED])) + (", ..." if len(keys) > KEYS_ASKED else "")


def _listed(word: str, keys: Sequence[str]) -> list[str]:
    hidden = len(keys) - KEYS_SHOWN
    more = [f"  {word}: and {hidden:,} more; -o json names all"] if hidden > 0 else []
    return [*(f"  {word}: {key}" for key in keys[:KEYS_SHOWN]), *more]
