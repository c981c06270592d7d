"""`cronring migrate`: make or update the tables."""

import asyncio
from typing import TYPE_CHECKING

import click

from cronring.cli.options import database_option, require_database_url

if TYPE_CHECKING:
    from sql import Migration


@click.command()
@database_option
def migrate(database_url: str | None) -> None:
    """Make the tables in PostgreSQL, or bring them to this version. Safe to run at any time, from several places.

    \b
    Example:
      cronring migrate --database-url postgresql://cronring@db.internal/cronring
    """
    from controller.store.migrate import migrate as apply

    def show(migration: "Migration") -> None:
        click.echo(f"applied {migration.version:04} {migration.name}")

    if asyncio.run(apply(require_database_url(database_url), show)) == 0:
        click.echo("nothing to do: the tables are up to date")
