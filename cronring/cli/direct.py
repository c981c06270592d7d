"""The first token of a cluster: whoever has the database may do anything there, and needs no controller to allow it."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from cronring.cli.flags import refused
from cronring.cli.interrupts import run_loop

if TYPE_CHECKING:
    from cronring.client.identities import MadeToken, RoleIn
    from cronring.controller.ports.tokens import TokenRow
    from cronring.controller.services.identities import WantedToken

METHOD: Final = "cronring token create"  # as the audit log names it


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
        TokenInfo(row.name, grants, _at(row.created_at), row.created_by, _ends(row), None, "", None), secret
    )


def _ends(row: "TokenRow") -> datetime | None:
    return None if row.expires_at is None else _at(row.expires_at)


def _at(instant_us: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=instant_us)
