"""Options of commands that change something: only what was seen, and only once.

No command is told of --idempotency-key: its client has it, for the one request that it makes.
"""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click

if TYPE_CHECKING:
    from cronring.client import AsyncClient

Command = TypeVar("Command", bound=Callable[..., Any])

KEY_FLAG: Final = "--idempotency-key"
_KEY: Final = "cronring.idempotency_key"


def _keep(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
    ctx.meta[_KEY] = value


if_match_option = click.option(
    "--if-match", metavar="ETAG", default="",
    help="Only if it still has this etag, which -o json names; else nothing is changed.",
)  # fmt: skip
_key_option = click.option(
    KEY_FLAG, metavar="KEY", expose_value=False, callback=_keep,
    help="Do it once in 24 hours, however often this is repeated with the same KEY.",
)  # fmt: skip


def idempotency_key_option(command: Command) -> Command:
    """A dry run changes nothing, so none may think that the key has counted for it."""

    @functools.wraps(command)
    def checked(*arguments: Any, **values: Any) -> Any:
        if values.get("dry_run"):
            refuse_key("a dry run changes nothing, and the key is free for what does")
        return command(*arguments, **values)

    return cast("Command", _key_option(checked))


def refuse_key(why: str) -> None:
    """Raises click.UsageError where the running command has a key, which would not count."""
    if click.get_current_context().meta.get(_KEY) is not None:
        raise click.UsageError(f"{KEY_FLAG}: {why}")


def with_given_key(client: "AsyncClient") -> "AsyncClient":
    """The client, with --idempotency-key if that is given. Raises Invalid for what is no key."""
    context = click.get_current_context(silent=True)
    key = context.meta.get(_KEY) if context is not None else None
    return client if key is None else client.with_key(key)


def refuse_etag_of_many() -> None:
    """Raises click.UsageError where the running command has a condition that only one job can have."""
    if click.get_current_context().params.get("if_match"):
        raise click.UsageError("--if-match: of one job alone; give its KEY")
