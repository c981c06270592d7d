"""`cronring runner-grant create|list|revoke`: what runners may host, and the join tokens by which they enroll."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from cronring.cli.bulk import actor, as_option
from cronring.cli.completion import grant_name
from cronring.cli.conditions import idempotency_key_option
from cronring.cli.conversation import ask, or_nearest
from cronring.cli.filtering import count_option
from cronring.cli.giving import LASTING, handing_over, lasting_s, secret_file_option
from cronring.cli.options import DAY_S, controllers_option, count, limit_option, output_option
from cronring.cli.output import Column, print_count, print_json, print_rows, short_instant
from cronring.cli.printing import say

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from cronring.client import AsyncClient
    from cronring.client.identities import GrantOfRunners

EXPIRES_S: Final = DAY_S  # of a join token, where nobody says: machines are set up today


@click.group("runner-grant")
def runner_grant() -> None:
    """Runner grants: which modules runners may host, of which namespace.

    A runner's certificate names its grant. A runner gets one by the grant's join token, which is shown once. Or a PKI
    of your own makes certificates that name the grant.
    """


@runner_grant.command()
@click.option("--name", required=True, help="What certificates name: lower case letters, digits, hyphens.")
@click.option("--namespace", default="default", show_default=True, help="Of what its runners host.")
@click.option("--modules", default="", metavar="NAME,...", help="What they may host.  [default: any of the namespace]")
@click.option("--may-activate/--no-may-activate", default=False, show_default=True,
              help="Whether a new version that they bring is active at once.")  # fmt: skip
@click.option("--uses", type=count(), metavar="N", help="How many runners may enroll.  [default: any number]")
@click.option("--expires", type=LASTING, show_default="1d", help="How long runners may enroll.")
@click.option("--certificate-only", is_flag=True, help="Make no join token: a PKI of your own makes certificates.")
@secret_file_option
@as_option
@output_option
@controllers_option
def create(  # noqa: PLR0917 - click passes them by name
    name: str, namespace: str, modules: str, may_activate: bool, uses: int | None, expires: float | None,
    certificate_only: bool, secret_file: Path | None, as_name: str | None, output: str, controllers: tuple[str, ...],
) -> None:  # fmt: skip
    """Say what runners may host, and print their join token: to standard output alone, and never again.

    \b
    Examples:
      cronring runner-grant create --name billing --namespace billing
      cronring runner-grant create --name east --modules invoices,dunning \\
        --uses 3 --expires 1h --secret-file east.join
      cronring runner-grant create --name west --certificate-only
    """
    if certificate_only and secret_file is not None:
        raise click.UsageError("--certificate-only makes no secret, so there is none for --secret-file")
    if expires is None and not certificate_only:
        expires = EXPIRES_S
    lasts_s = None if expires is None else lasting_s(expires, "this join token")
    wanted = [part.strip() for part in modules.split(",") if part.strip()]
    with handing_over(secret_file) as hand_over:
        made = ask(
            controllers,
            lambda client: client.identities.create_runner_grant(
                name, namespace, wanted, may_activate=may_activate, certificate_only=certificate_only, uses=uses,
                lasts_s=lasts_s, by=actor(as_name),
            ),
        )  # fmt: skip
        if output == "json":
            print_json(made if secret_file is None else {"grant": made.grant})
        if made.secret and (output != "json" or secret_file is not None):
            hand_over(made.secret)
    row = made.grant
    say(f"the runner grant {row.name} is for {_modules(row)}; {_joining(row)}", err=True)


@runner_grant.command("list")
@click.option("--revoked", is_flag=True, help="Those that were revoked, too.")
@count_option
@limit_option(200)
@output_option
@controllers_option
def list_grants(revoked: bool, count: bool, limit: int, output: str, controllers: tuple[str, ...]) -> None:
    """List runner grants of the namespaces that you are admin of."""
    if count:
        counted = ask(controllers, lambda client: client.identities.count_runner_grants(with_revoked=revoked))
        print_count("runner_grants", counted, output)
        return
    rows = ask(controllers, lambda client: client.identities.runner_grants(with_revoked=revoked, limit=limit))
    if output == "json":
        print_json(rows)
        return
    columns: list[Column[GrantOfRunners]] = [
        Column("name", lambda row: row.name),
        Column("hosts", _modules),
        Column("may activate", lambda row: "yes" if row.may_activate else "no"),
        Column("enrolling", _joining),
        Column("created", lambda row: short_instant(row.created_at)),
        Column("by", lambda row: row.created_by),
    ]
    if revoked:
        columns.append(Column("revoked", lambda row: short_instant(row.revoked_at)))
    print_rows(columns, rows, "there is no runner grant that you may see; `cronring runner-grant create` makes one")


@runner_grant.command()
@click.argument("name", shell_complete=grant_name)
@idempotency_key_option
@as_option
@output_option
@controllers_option
def revoke(name: str, as_name: str | None, output: str, controllers: tuple[str, ...]) -> None:
    """Revoke a grant: nobody enrolls by it any more, and certificates that name it are refused."""

    async def question(client: "AsyncClient") -> "GrantOfRunners":
        answer: Awaitable[GrantOfRunners] = client.identities.revoke_runner_grant(name, actor(as_name))
        return await or_nearest(answer, "runner grant", name, lambda: _names(client), "cronring runner-grant list")

    row = ask(controllers, question)
    if output == "json":
        print_json(row)
        return
    say(f"the runner grant {row.name} is revoked")


async def _names(client: "AsyncClient") -> list[str]:
    return [row.name for row in await client.identities.runner_grants()]


def _modules(row: "GrantOfRunners") -> str:
    return f"{row.namespace}/{','.join(row.modules) or '*'}"


def _joining(row: "GrantOfRunners") -> str:
    if not row.may_enroll:
        return "by certificates alone"
    uses = "any number" if row.uses_left is None else f"{row.uses_left} more"
    return f"{uses}, until {short_instant(row.expires_at)}" if row.expires_at else uses
