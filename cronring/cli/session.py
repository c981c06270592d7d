"""One short conversation with the controllers."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from cronring.cli.failures import Failure, nearest
from cronring.cli.flags import refused
from cronring.client.errors import Invalid, NotFound

if TYPE_CHECKING:
    from cronring.client import Client

Answer = TypeVar("Answer")


def ask(addresses: tuple[str, ...], question: "Callable[[Client], Coroutine[Any, Any, Answer]]") -> Answer:
    """What the controllers answer to `question(client)`.

    Raises Failure for what they refuse, in words of the command that is running.
    """

    async def conversation() -> Answer:
        from cronring.client import Client

        async with Client(addresses) as client:
            return await question(client)

    try:
        return asyncio.run(conversation())
    except Invalid as error:
        raise refused(error) from error


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
        raise Failure(f"there is no {what} {name!r}.{nearest(name, names)}{listed}") from error


async def job_keys(client: "Client") -> list[str]:
    return [job.key for job in await client.jobs.list(limit=10_000)]
