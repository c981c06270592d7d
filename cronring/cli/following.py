"""Printing what executions print, while they do."""

import asyncio
import codecs
import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from cronring.cli.failures import EXIT_UNREACHABLE, Failure
from cronring.cli.output import milliseconds, print_json_line
from cronring.cli.printing import OutputPrinter, say, say_lines
from cronring.client.errors import Refused, Unavailable, Unreachable

if TYPE_CHECKING:
    from cronring.client import AsyncClient
    from cronring.client.model import Execution

POLL_S: Final = 0.3


async def print_output(
    client: "AsyncClient", execution_id: int, *, once: bool = False, quiet: bool = False, colours: bool = False
) -> "Execution":
    """Its output to stdout as it comes (unless `quiet`); how it ended, or stands. Raises what client.follow raises."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    printer = OutputPrinter(colours=colours)
    try:
        async for chunk in client.executions.follow(execution_id, once=once):
            if not quiet:
                if chunk.gap > 0:
                    printer.feed(decoder.decode(b"", final=True))
                    printer.end()
                    say(f"[… {chunk.gap} bytes of output cut …]")
                    decoder.reset()
                printer.feed(decoder.decode(chunk.data))
            if chunk.execution is not None:
                return chunk.execution
    finally:
        printer.end()
    raise AssertionError("a stream that ended without an end")


async def follow_as_json(client: "AsyncClient", execution_id: int, *, once: bool) -> None:
    """The same as objects, one a line: its output as it comes, then itself."""
    from cronring.cli.execution_rows import listed

    decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def tell(data: bytes, *, final: bool = False) -> None:
        if text := decoder.decode(data, final=final):
            print_json_line({"kind": "output", "text": text})

    async for chunk in client.executions.follow(execution_id, once=once):
        if chunk.gap > 0:
            tell(b"", final=True)
            print_json_line({"kind": "cut", "bytes": chunk.gap})
            decoder.reset()
        tell(chunk.data, final=chunk.execution is not None)
        if chunk.execution is not None:
            print_json_line({"kind": "execution", "execution": listed(chunk.execution)})
            return


async def follow_or_fail(client: "AsyncClient", execution_id: int, *, quiet: bool) -> "Execution":
    """The same; what can't be followed is a Failure with EXIT_UNREACHABLE."""
    try:
        with telling_how_it_goes_on(*goes_on(execution_id)):
            return await print_output(client, execution_id, quiet=quiet)
    except (Unreachable, Unavailable, Refused) as error:
        message = f"execution {execution_id} could not be followed to its end: {error}"
        what, *ways = goes_on(execution_id)
        raise Failure("\n  ".join([f"{message}\n{what}", *ways]), EXIT_UNREACHABLE) from error


def goes_on(execution_id: int) -> tuple[str, ...]:
    """What whoever stops waiting has to know."""
    return (
        f"execution {execution_id} goes on without this command",
        f"see it: cronring logs -f {execution_id}",
        f"stop it: cronring executions cancel {execution_id}",
    )


@contextlib.contextmanager
def telling_how_it_goes_on(what: str, *ways: str) -> Iterator[None]:
    """Where Ctrl-C ends the waiting, what is waited for doesn't end. `ways`: to see it, and to stop it."""
    try:
        yield
    except asyncio.CancelledError:
        say(err=True)  # behind the ^C
        say(what, err=True)
        say_lines((f"  {way}" for way in ways), err=True)
        raise


async def running_or_next(client: "AsyncClient", job: str) -> int:
    """The id of the execution of a job that runs; of its next one, as soon as it runs, if none does."""
    latest = await client.executions.list(job, limit=1)
    after_id = latest[0].id if latest else 0
    if latest and latest[0].outcome is None:
        return after_id
    say(f"{job} doesn't run; waiting for its next execution", err=True)
    while True:
        found = await client.executions.list(job, after_id=after_id, limit=1_000)
        if found:
            return found[-1].id
        await asyncio.sleep(POLL_S)


def ending_of(execution: "Execution") -> str:
    """One line: how it ended, or that it runs."""
    what = f"execution {execution.id} of {execution.job}"
    if execution.outcome is None:
        return f"{what} runs on {execution.runner}"
    error = (
        f" ({execution.error_type}: {execution.error_message.partition(chr(10))[0]})" if execution.error_type else ""
    )
    return f"{what}: {execution.outcome} after {milliseconds(execution.duration_ms)}{error}"
