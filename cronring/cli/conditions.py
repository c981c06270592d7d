"""Options of commands that change something: only what was seen, and only once.

No command is told of --idempotency-key: its client has it, for the one change that it makes.
"""

from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from cronring.client import AsyncClient

_KEY: Final = "cronring.idempotency_key"


def _keep(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
    ctx.meta[_KEY] = value


if_match_option = click.option(
    "--if-match", metavar="ETAG", default="",
    help="Only if it still has this etag, which -o json names; else nothing is changed.",
)  # fmt: skip
idempotency_key_option = click.option(
    "--idempotency-key", metavar="KEY", expose_value=False, callback=_keep,
    help="Do it once in 24 hours, however often this is repeated with the same KEY.",
)  # fmt: skip


def with_given_key(client: "AsyncClient") -> "AsyncClient":
    """The client, with --idempotency-key if that is given. Raises Invalid for what is no key."""
    context = click.get_current_context(silent=True)
    key = context.meta.get(_KEY) if context is not None else None
    return client if key is None else client.with_key(key)


def refuse_of_many() -> None:
    """Raises click.UsageError where the running command has a condition that only one job can have."""
    context = click.get_current_context()
    given = {"--if-match": context.params.get("if_match"), "--idempotency-key": context.meta.get(_KEY)}
    if named := [flag for flag, value in given.items() if value]:
        raise click.UsageError(f"{' and '.join(named)}: of one job alone; give its KEY")
