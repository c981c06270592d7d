"""One short conversation with the controllers."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from cronring.cli.credentials import connect
from cronring.cli.failures import EXIT_UNREACHABLE, Failure, suggestion
from cronring.cli.flags import refused
from cronring.cli.interrupts import run_loop
from cronring.cli.options import whose_controllers
from cronring.client.errors import ClientError, Invalid, NotFound, Unreachable

if TYPE_CHECKING:
    from cronring.client import AsyncClient

Answer = TypeVar("Answer")

COUNTED_MAX: Final = 1_001  # of what a filter leaves nothing of


def ask(addresses: tuple[str, ...], question: "Callable[[AsyncClient], Coroutine[Any, Any, Answer]]") -> Answer:
    """What the controllers answer to `question(client)`.

    Raises Failure for what they refuse, in words of the command that is running.
    """

    async def conversation() -> Answer:
        async with connect(addresses) as client:
            return await question(client)

    try:
        return run_loop(conversation())
    except Invalid as error:
        raise refused(error) from error
    except Unreachable as error:
        source = whose_controllers()
        raise Failure(
            f"{error}\n(the addresses are from {source})" if source else str(error), EXIT_UNREACHABLE
        ) from error


async def page_url(client: "AsyncClient", page: str) -> str:
    """Where that page of the console is, for who goes on there. "": the controllers don't say."""
    return (await links(client)).to(page)


class Links(NamedTuple):
    """What controllers say of addresses for browsers. "": they don't."""

    console: str = ""
    traces: str = ""  # a template

    def to(self, page: str) -> str:
        return self.console and self.console + page

    def to_trace(self, trace_id: str) -> str:
        return self.traces.replace("{trace_id}", trace_id)


async def links(client: "AsyncClient") -> Links:
    try:
        told = await client.cluster.get()
    except ClientError:  # the answer that was asked for is there: a link less is no reason to fail
        return Links()
    return Links(told.console_url, told.trace_url_template)


def nothing_found(
    addresses: tuple[str, ...],
    what: str,
    filters: Mapping[str, object],
    everything: "Callable[[AsyncClient], Coroutine[Any, Any, Sequence[object]]]",
    nothing: str,
) -> str:
    """Why a list is empty: the filters leave nothing of what there is; or there is nothing, and `nothing` says so.

    `filters`: by option, what was given; by "", words that are none. `everything`: without them, COUNTED_MAX at most.
    """
    options = {name: value for name, value in filters.items() if name and value}
    given = " ".join(f"--{name}" if value is True else f"--{name} {value}" for name, value in options.items())
    given = " ".join(filter(None, (given, str(filters.get("", "")))))
    there = len(ask(addresses, everything)) if given else 0
    if not there:
        return nothing
    count = f"more than {COUNTED_MAX - 1:,}" if there >= COUNTED_MAX else f"{there:,}"
    return f"of {count} {what} none matches {given}"


async def or_nearest(
    answer: Awaitable[Answer], what: str, name: str, known: Callable[[], Awaitable[list[str]]], listing: str = ""
) -> Answer:
    """`answer`; where there is no such thing, a Failure that names what comes nearest among `known()`.

    `listing`: the command that shows all; "": `cronring WHATs list`.
    """
    try:
        return await answer
    except NotFound as error:
        names = await known()
        if name in names:  # it is something else of it that isn't there
            raise
        listed = (
            f" `{listing or f'cronring {what}s list'}` shows all {len(names)}." if names else f" There are no {what}s."
        )
        raise Failure(f"there is no {what} {name!r}.{suggestion(name, names)}{listed}") from error


async def job_keys(client: "AsyncClient") -> list[str]:
    return [job.key for job in await client.jobs.list(limit=10_000)]
