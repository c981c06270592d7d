"""`cronring events`: what happens to jobs, executions and the cluster."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from cronring.cli.conversation import ask
from cronring.cli.event_lines import event_json, event_line
from cronring.cli.failures import Failure
from cronring.cli.options import controllers_option, output_option
from cronring.cli.output import print_json_line
from cronring.cli.printing import say

if TYPE_CHECKING:
    from cronring.client import AsyncClient
    from cronring.client.events import Event

POSITION_MAX: Final = 1_000_000  # characters; what is longer is no position


class _KeptPosition:
    """A position in a file; None: it is kept nowhere."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._kept = ""

    def read(self) -> str:
        """ "": nothing has been kept there. Raises Failure."""
        if self._path is None:
            return ""
        try:
            with self._path.open(encoding="ascii") as file:
                self._kept = file.read(POSITION_MAX).strip()
        except FileNotFoundError:
            return ""
        except (OSError, UnicodeDecodeError) as error:
            raise Failure(f"--position {self._path}: it can't be read ({error}); remove it to begin anew") from None
        return self._kept

    def keep(self, position: str) -> None:
        """Whoever kills this finds the old one or the new one. Raises Failure."""
        if self._path is None or position in {"", self._kept}:
            return
        if not (position.isascii() and position.isprintable()):
            raise Failure("what the controller gave as a position is none; nothing is kept")
        beside = self._path.with_name(f"{self._path.name}.new")
        try:
            beside.write_text(f"{position}\n", "ascii")
            beside.replace(self._path)
        except OSError as error:
            raise Failure(f"--position {self._path}: {error.strerror}; name another place") from error
        self._kept = position


@click.command("events")
@click.option("-f", "--follow", is_flag=True, help="Go on, until Ctrl-C.")
@click.option("--position", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Start at the position in FILE, and save the last position there.")  # fmt: skip
@click.option("--namespace", default="", help="Only of its jobs and executions.  [default: all that you may view]")
@output_option
@controllers_option
def events(follow: bool, position: Path | None, namespace: str, output: str, controllers: tuple[str, ...]) -> None:
    """Tell what happens to jobs, executions and the cluster.

    With --follow, all from now on. With --position FILE, all since the last time that FILE was given. The first time
    there is nothing to tell yet. A position counts for a day, at any controller: nothing is left out, and where
    something may be, a line says `resync`. With -o json each line is an event, with its position.

    \b
    Examples:
      cronring events --follow
      cronring events --position seen.txt -o json | jq -r .kind
    """
    if not follow and position is None:
        raise click.UsageError("since when? Give --position FILE, which keeps where you came to; or --follow")
    kept = _KeptPosition(position)
    after = kept.read()

    async def question(client: "AsyncClient") -> None:
        if not follow:
            await _tell_page(client, kept, after, namespace, output)
            return
        async for event in client.events(after, namespace):
            _tell(event, output)
            kept.keep(event.position)

    ask(controllers, question)


async def _tell_page(client: "AsyncClient", kept: _KeptPosition, after: str, namespace: str, output: str) -> None:
    page = await client.poll_events(after, namespace)
    for event in page.events:
        _tell(event, output)
    kept.keep(page.position)
    if page.resync:
        say("that position is too old, or none: what was before may be left out; look at lists", err=True)
    elif not after:
        say("from here on: the next time this tells what has happened since", err=True)
    elif not page.events:
        say("nothing has happened since", err=True)


def _tell(event: "Event", output: str) -> None:
    if output == "json":
        print_json_line(event_json(event))
    else:
        say(event_line(event))
