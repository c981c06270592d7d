"""`cronring migrate`: make or update the tables."""

from typing import TYPE_CHECKING

import click

from cronring.cli.interrupts import run_loop
from cronring.cli.options import database_option, option, output_option, require_database_url, schema_option
from cronring.cli.output import print_json
from cronring.cli.printing import say

if TYPE_CHECKING:
    from cronring.sql import Migration


@click.command()
@database_option
@schema_option
@option("--grant-to", metavar="ROLE", default="",
        help="Let this role run controllers, with the least rights. Say it with each migration.")  # fmt: skip
@output_option
def migrate(database_url: str | None, schema: str, grant_to: str, output: str) -> None:
    """Make the tables in PostgreSQL, or bring them to this version. Safe to run at any time, from several places.

    Whoever migrates owns the tables, and the schema if there is none yet.

    \b
    Examples:
      cronring migrate --database-url postgresql://cronring@db.internal/cronring
      cronring migrate --database-url @/run/secrets/cronring
      cronring migrate --schema cronring_staging --grant-to cronring_controllers
    """
    from cronring.controller.store.migrate import migrate as apply

    applied: list[dict[str, object]] = []

    def show(migration: "Migration") -> None:
        applied.append({"version": migration.version, "name": migration.name})
        if output != "json":
            say(f"applied {migration.version:04} {migration.name}")

    run_loop(apply(require_database_url(database_url), show, schema=schema, grant_to=grant_to))
    if output == "json":
        print_json({"schema": schema, "applied": applied})
    elif not applied:
        say("nothing to do: the tables are up to date")
