"""What is done in the database itself, and asks no controller: above all the first token of a cluster.

Whoever has the database may do anything there.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

import click

from cronring.cli.flags import refused
from cronring.cli.interrupts import run_loop
from cronring.schema.instant import from_us

if TYPE_CHECKING:
    from cronring.client.identities import MadeToken, RoleIn
    from cronring.controller.ports.tokens import TokenRow
    from cronring.controller.services.identities import WantedToken

METHOD: Final = "cronring token create"  # as the audit log names it


def is_typed(name: str) -> bool:
    """Whether that parameter of the running command stood on its command line."""
    return click.get_current_context().get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def is_direct(database_url: str | None, why_one: str) -> bool:
    """A variable doesn't stand against controllers that were typed. Raises click.UsageError where both were."""
    if not database_url:
        return False
    if is_typed("database_url") and is_typed("controllers"):
        raise click.UsageError(f"give --database-url or --controllers: {why_one}")
    return not is_typed("controllers")


def make_in_database(
    url: str, schema: str, name: str, grants: "Sequence[RoleIn]", lasts_s: float | None
) -> "MadeToken":
    """Raises Failure, in words of the command that is running; StoreUnavailable, StoreError, Conflict."""
    from cronring.client.errors import Invalid
    from cronring.controller.services.identities import WantedToken, token_faults

    lasts_ms = None if lasts_s is None else round(lasts_s * 1_000)
    wanted = WantedToken(name, tuple((each.role, each.namespace) for each in grants), lasts_ms, by="")
    if faults := token_faults(wanted):
        raise refused(Invalid("it is invalid", faults, len(faults)))
    return run_loop(_make(url, schema, wanted))


async def _make(url: str, schema: str, wanted: "WantedToken") -> "MadeToken":
    from cronring.client.identities import MadeToken, RoleIn, TokenInfo
    from cronring.controller.ports.caller import calling
    from cronring.controller.services.identities import make_token
    from cronring.controller.store.pool import Database
    from cronring.controller.store.recording import database_principal
    from cronring.controller.store.tokens import PostgresTokens

    database = await Database.open(url, METHOD, 1, schema=schema)
    try:
        who = await database_principal(database)
        with calling(who, METHOD):
            row, secret = await make_token(PostgresTokens(database), wanted._replace(by=str(who)))
    finally:
        await database.close()
    grants = tuple(RoleIn(grant.role.value, grant.namespace) for grant in row.grants)
    return MadeToken(
        TokenInfo(row.name, grants, from_us(row.created_at), row.created_by, _ends(row), None, "", None), secret
    )


def _ends(row: "TokenRow") -> datetime | None:
    return None if row.expires_at is None else from_us(row.expires_at)
