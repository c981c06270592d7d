"""`cronring queues consume QUEUE -- COMMAND`: a command for each message."""

import asyncio
import os
import signal
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import click

from cronring.cli.bulk import actor, as_option
from cronring.cli.commands.queue_names import queue_argument, queue_named
from cronring.cli.options import Duration, controllers_option, count
from cronring.cli.printing import say
from cronring.cli.session import ask

if TYPE_CHECKING:
    from cronring.client import AsyncClient
    from cronring.client.consuming import Consumer, Message

DAY_S: Final = 86_400.0
STOP_S: Final = 10.0  # between SIGTERM and SIGKILL for a command whose message is gone


class CommandFailed(Exception):
    """Its exit code was not 0: the message comes again."""


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

    Ctrl-C and SIGTERM let COMMAND end, and then stop; a second Ctrl-C stops it, too.

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
        return await _work(consumer, command, limit)

    done, failed = ask(controllers, question)
    say(f"{queue}: {done:,} done, {failed:,} failed", err=True)


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
            done, failed = (done, failed + 1) if message.error or message.lost else (done + 1, failed)
            if limit is not None and done + failed >= limit:
                consumer.stop()
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
    return done, failed


async def _run(command: tuple[str, ...], message: "Message") -> None:
    """Raises CommandFailed, OSError. The command has a group of its own: Ctrl-C is ours."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, env=os.environ | _told(message), start_new_session=True
    )  # fmt: skip
    try:
        await process.communicate(message.payload.encode())
    except asyncio.CancelledError:
        await _end(process)
        raise
    if process.returncode:
        raise CommandFailed(f"{command[0]} ended with exit code {process.returncode}")


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
