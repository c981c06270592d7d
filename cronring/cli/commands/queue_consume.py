"""`cronring queues consume QUEUE -- COMMAND`: a command for each message."""

import asyncio
import contextlib
import fcntl
import logging
import os
import signal
import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import click

from cronring.child.guard import kill_at_end
from cronring.cli.bulk import actor, as_option
from cronring.cli.commands.queue_names import queue_argument, queue_named
from cronring.cli.conversation import ask
from cronring.cli.options import Duration, controllers_option, count
from cronring.cli.printing import say

if TYPE_CHECKING:
    from cronring.client import AsyncClient
    from cronring.client.consuming import Consumer, Message

DAY_S: Final = 86_400.0
STOP_S: Final = 10.0  # between SIGTERM and SIGKILL for a command whose message is gone


_FATES: Final = {
    "waits": "the message comes again later",
    "dead": "the message is dead: `cronring queues dead` lists it",
    "ended": "its execution has ended by that",
    "": "the message comes again when its lease has run out",
}


class CommandFailed(Exception):
    """Its exit code was not 0: the message comes again."""


class _Lines(logging.Handler):
    """What the client warns of, in a line. What failed is told here, with what becomes of it."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info is None:
            say(record.getMessage(), err=True)


@click.command()
@queue_argument
@click.argument("command", nargs=-1, required=True, metavar="-- COMMAND [ARGUMENT]...", type=click.UNPROCESSED)
@click.option("--most", type=click.IntRange(1, 1_000), default=1, show_default=True, help="Messages of one take.")
@click.option("--hold", type=Duration(1, DAY_S), default="30s", show_default=True,
              help="How long a lost consumer's messages wait; it is extended while COMMAND runs.")  # fmt: skip
@click.option("--limit", type=count(), metavar="N", help="Stop after so many messages.")
@click.option("--until-empty", is_flag=True, help="Stop when nothing is ready.")
@as_option
@controllers_option
def consume(
    queue: str, command: tuple[str, ...], most: int, hold: float, limit: int | None, until_empty: bool,
    as_name: str | None, controllers: tuple[str, ...],
) -> None:  # fmt: skip
    """Run COMMAND for each message of QUEUE, one after the other.

    The payload, as JSON, is its standard input. Exit code 0: the message is done. Any other one: it failed, and comes
    again later. CRONRING_MESSAGE_ID, CRONRING_WORKSPACE, CRONRING_DELIVERY, CRONRING_LEASE and CRONRING_JOB tell more.

    Ctrl-C and SIGTERM let COMMAND end, and then stop; a second Ctrl-C stops it, too. On Linux, COMMAND and what it
    started are killed when this process dies (kill -9).

    \b
    Examples:
      cronring queues consume reports -- ./make-report
      cronring queues consume prod/mail --until-empty -- sh -c 'jq .to | send'
    """
    namespace, name = queue_named(queue)

    async def question(client: "AsyncClient") -> tuple[int, int]:
        consumer = client.consume(
            name, consumer=actor(as_name), namespace=namespace, most=most, hold=timedelta(seconds=hold),
            until_empty=until_empty,
        )  # fmt: skip
        with _warned():
            return await _work(consumer, command, limit)

    done, failed = ask(controllers, question)
    say(f"{queue}: {done:,} done, {failed:,} failed", err=True)


@contextlib.contextmanager
def _warned() -> Iterator[None]:
    from cronring.client import consuming

    log, lines = logging.getLogger(consuming.__name__), _Lines()
    log.addHandler(lines)
    try:
        yield
    finally:
        log.removeHandler(lines)


async def _work(consumer: "Consumer", command: tuple[str, ...], limit: int | None) -> tuple[int, int]:
    loop, numbers = asyncio.get_running_loop(), (signal.SIGTERM, signal.SIGINT)

    def stop() -> None:
        consumer.stop()
        loop.remove_signal_handler(signal.SIGINT)

    for number in numbers:
        loop.add_signal_handler(number, stop)
    done = failed = 0
    try:
        async for message in consumer:
            async with message:
                await _run(command, message)
            if message.error:
                say(f"message {message.id}, delivery {message.delivery}: {message.error}; {_fate(message)}", err=True)
            done, failed = (done, failed + 1) if message.error or message.lost else (done + 1, failed)
            if limit is not None and done + failed >= limit:
                consumer.stop()
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
    return done, failed


async def _run(command: tuple[str, ...], message: "Message") -> None:
    """Raises CommandFailed, OSError. The command has a group of its own: Ctrl-C is ours."""
    with _lifeline() as lifeline:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, env=os.environ | _told(message), start_new_session=True,
            pass_fds=(lifeline,),
        )  # fmt: skip
        if sys.platform == "linux":
            with contextlib.suppress(ProcessLookupError):  # it has ended already
                kill_at_end(lifeline, process.pid)
        try:
            await process.communicate(message.payload.encode())
        except asyncio.CancelledError:
            await _end(process)
            raise
    if process.returncode:
        raise CommandFailed(f"{command[0]} {_end_of(process.returncode)}")


@contextlib.contextmanager
def _lifeline() -> Iterator[int]:
    """The end of a pipe that the command inherits. Its other end is this process's alone, and so ends with it."""
    # docs/decisions/0058: PR_SET_PDEATHSIG spares what a command started
    theirs, ours = os.pipe()
    try:
        yield theirs
    finally:
        if sys.platform == "linux":
            fcntl.fcntl(theirs, fcntl.F_SETOWN, 0)  # what a command that has ended left behind is its own affair
        os.close(theirs)
        os.close(ours)


def _end_of(returncode: int) -> str:
    if returncode > 0:
        return f"ended with exit code {returncode}"
    with contextlib.suppress(ValueError):
        return f"was ended by {signal.Signals(-returncode).name}"
    return f"was ended by signal {-returncode}"


def _fate(message: "Message") -> str:
    return _FATES.get(message.state, f"the message is {message.state}: somebody else has it, or it was cancelled")


async def _end(process: Any) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.returncode is None:
            os.killpg(process.pid, number)
            await asyncio.wait({asyncio.ensure_future(process.wait())}, timeout=STOP_S)


def _told(message: "Message") -> dict[str, str]:
    return {
        "CRONRING_MESSAGE_ID": str(message.id),
        "CRONRING_WORKSPACE": message.workspace,
        "CRONRING_DELIVERY": str(message.delivery),
        "CRONRING_LEASE": str(message.lease),
        "CRONRING_JOB": message.job,
    }
