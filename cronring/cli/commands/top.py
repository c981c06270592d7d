"""`cronring top`: the cluster, live."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from cronring.cli.conversation import ask
from cronring.cli.options import DAY_S, Duration, controllers_option, output_option
from cronring.cli.output import print_json_line
from cronring.cli.printing import say, screen
from cronring.client.errors import ClientError

if TYPE_CHECKING:
    from rich.console import Console

    from cronring.client import AsyncClient

QUIT: Final = (b"q", b"Q", b"")


@click.command()
@click.option("--once", is_flag=True, help="Print one frame, and end.")
@click.option(
    "--interval", type=Duration(0.1, DAY_S), default="2s", show_default=True, help="How often it is drawn anew."
)
@output_option
@controllers_option
def top(once: bool, interval: float, output: str, controllers: tuple[str, ...]) -> None:
    """Watch the cluster: controllers, runners, what runs, what is due soon, what has failed, and how fast it goes.

    It fits any terminal from 80x24 on. q or Ctrl-C ends it. Rates need two frames, so --once shows none.

    -o json prints each frame as an object on a line of its own, also without a terminal, until Ctrl-C.

    \b
    Examples:
      cronring top
      cronring top --once
      cronring top -o json --interval 10s | jq -c '.figures.running'
    """
    if output == "json":
        ask(controllers, lambda client: _lines(client, interval, once=once))
        return
    if not once and not sys.stdout.isatty():
        raise click.UsageError("top draws on a terminal; --once prints one frame into anything else")
    console = screen()
    ask(controllers, lambda client: _print(client, console) if once else _live(client, console, interval))


async def _print(client: "AsyncClient", console: "Console") -> None:
    from cronring.cli.top.frame import Counting, take_frame
    from cronring.cli.top.picture import picture

    console.print(picture(await take_frame(client, Counting()), console.width, console.height))


async def _lines(client: "AsyncClient", interval_s: float, *, once: bool) -> None:
    """A frame that can't be had is said on stderr, and the next one is tried; the first one is an error."""
    from cronring.cli.top.frame import Counting, as_json, take_frame

    counting = Counting()
    print_json_line(as_json(await take_frame(client, counting)))
    while not once:
        await asyncio.sleep(interval_s)
        try:
            print_json_line(as_json(await take_frame(client, counting)))
        except ClientError as error:
            say(str(error), err=True)


async def _live(client: "AsyncClient", console: "Console", interval_s: float) -> None:
    """Until somebody quits. A frame that can't be had leaves the one before, and says why."""
    from rich.live import Live

    from cronring.cli.top.frame import Counting, take_frame
    from cronring.cli.top.picture import picture

    counting, problem = Counting(), ""
    frame = await take_frame(client, counting)
    quitting = asyncio.Event()
    with _keys(quitting), Live(console=console, screen=True, auto_refresh=False) as live:
        while not quitting.is_set():
            live.update(picture(frame, console.width, console.height, problem), refresh=True)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(interval_s):
                    await quitting.wait()
            if not quitting.is_set():
                try:
                    frame, problem = await take_frame(client, counting), ""
                except ClientError as error:
                    problem = str(error)


@contextlib.contextmanager
def _keys(quitting: asyncio.Event) -> Iterator[None]:
    """Single keys, not echoed, as long as it lasts."""
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(descriptor)

    def pressed() -> None:
        if os.read(descriptor, 1) in QUIT:
            quitting.set()

    loop = asyncio.get_running_loop()
    tty.setcbreak(descriptor)
    loop.add_reader(descriptor, pressed)
    try:
        yield
    finally:
        loop.remove_reader(descriptor)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
