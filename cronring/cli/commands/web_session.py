"""`cronring session list|revoke`: browsers in which somebody is logged in."""

from typing import TYPE_CHECKING

import click

from cronring.cli.bulk import actor, as_option
from cronring.cli.conditions import idempotency_key_option
from cronring.cli.conversation import ask
from cronring.cli.filtering import count_option
from cronring.cli.options import ROW_ID, controllers_option, limit_option, output_option
from cronring.cli.output import Column, print_count, print_json, print_rows, short_instant
from cronring.cli.printing import say

if TYPE_CHECKING:
    from cronring.client.identities import LoggedIn


@click.group("session")
def web_session() -> None:
    """Sessions: browsers in which somebody is logged in.

    A browser gets one at /login of a controller, by a token or by an issuer. It ends after 12 h, after 2 h in which
    nobody uses it, or with its token.
    """


@web_session.command("list")
@click.option("--ended", is_flag=True, help="Those that have ended, too.")
@count_option
@limit_option(200)
@output_option
@controllers_option
def list_sessions(ended: bool, count: bool, limit: int, output: str, controllers: tuple[str, ...]) -> None:
    """List your own sessions, and those that give nothing outside of the namespaces that you are admin of."""
    if count:
        counted = ask(controllers, lambda client: client.identities.count_sessions(with_ended=ended))
        print_count("sessions", counted, output)
        return
    rows = ask(controllers, lambda client: client.identities.sessions(with_ended=ended, limit=limit))
    if output == "json":
        print_json(rows)
        return
    columns: list[Column[LoggedIn]] = [
        Column("id", lambda row: str(row.id)),
        Column("who", lambda row: row.principal),
        Column("from", lambda row: row.origin),
        Column("began", lambda row: short_instant(row.created_at)),
        Column("last used", lambda row: short_instant(row.last_used_at)),
        Column("ends", lambda row: short_instant(row.expires_at)),
    ]
    if ended:
        columns.append(Column("ended", lambda row: f"by {row.revoked_by}" if row.revoked_by else row.ended or "-"))
    print_rows(columns, rows, "there is no session that you may see; a browser gets one at /login of a controller")


@web_session.command()
@click.argument("session_id", metavar="ID", type=ROW_ID)
@idempotency_key_option
@as_option
@output_option
@controllers_option
def revoke(session_id: int, as_name: str | None, output: str, controllers: tuple[str, ...]) -> None:
    """End a session: a second later at most, its browser has to log in again.

    \b
    Examples:
      cronring session list
      cronring session revoke 17
    """
    row = ask(controllers, lambda client: client.identities.revoke_session(session_id, actor(as_name)))
    if output == "json":
        print_json(row)
        return
    say(f"the session {row.id} of {row.principal} has ended")
