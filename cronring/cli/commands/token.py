"""`cronring token create|list|revoke|curl`: bearer tokens of people and programs."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cronring.cli.bulk import actor, as_option
from cronring.cli.completion import token_name
from cronring.cli.conditions import idempotency_key_option
from cronring.cli.conversation import ask, or_nearest
from cronring.cli.credentials import identity_of
from cronring.cli.direct import is_direct, make_in_database
from cronring.cli.filtering import count_option
from cronring.cli.giving import LASTING, handing_over, lasting_s, secret_file_option
from cronring.cli.options import controllers_option, database_option, limit_option, output_option, schema_option
from cronring.cli.output import Column, print_count, print_json, print_rows, short_instant
from cronring.cli.printing import say

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from cronring.client import AsyncClient
    from cronring.client.identities import RoleIn, TokenInfo


@click.group()
def token() -> None:
    """Tokens: who may call the controllers, and do what.

    A token is shown once, when it is made. Only its hash is kept. Give it to commands by CRONRING_TOKEN, or in a file
    by --token-file or CRONRING_TOKEN_FILE.

    \b
    Roles, each in one namespace, or in all of them (*):
      viewer          sees jobs, executions, deployments, the cluster
      outputs-viewer  sees outputs, stacks and payloads, too
      operator        changes jobs and executions, too
      deployer        sees what a viewer sees, and changes deployments
      consumer        works on messages of queues, and sees nothing else
      admin           does everything
    """


@token.command()
@click.option("--name", required=True, help="What it is called, in lists and wherever it did something.")
@click.option("--role", "role", multiple=True, required=True, metavar="ROLE[@NAMESPACE]",
              help="What it may do; may be repeated.")  # fmt: skip
@click.option("--namespace", default="default", show_default=True,
              help="Where, for each --role that names none; * for all.")  # fmt: skip
@click.option("--expires", type=LASTING, default="90d", show_default=True, help="How long it works.")
@secret_file_option
@as_option
@database_option
@schema_option
@output_option
@controllers_option
def create(  # noqa: PLR0917 - click passes them by name
    name: str, role: tuple[str, ...], namespace: str, expires: float, secret_file: Path | None, as_name: str | None,
    database_url: str | None, schema: str, output: str, controllers: tuple[str, ...],
) -> None:  # fmt: skip
    """Make a token, and print it: to standard output alone, and never again.

    With --database-url it is written into PostgreSQL itself: so the first one of a cluster is made.

    \b
    Examples:
      export CRONRING_TOKEN=$(cronring token create --name me --role admin \\
        --namespace '*' --database-url @/run/secrets/cronring)
      cronring token create --name ci --role deployer --namespace billing
      cronring token create --name board --role viewer@billing \\
        --role viewer@prod --expires 365d --secret-file board.token
    """
    lasts_s = lasting_s(expires, "this token")
    grants, direct = _grants(role, namespace), is_direct(database_url, "a token is made in one place")
    with handing_over(secret_file) as hand_over:
        if direct:
            made = make_in_database(str(database_url), schema, name, grants, lasts_s)
        else:
            made = ask(
                controllers,
                lambda client: client.identities.create_token(name, grants, lasts_s=lasts_s, by=actor(as_name)),
            )
        if output == "json":
            print_json(made if secret_file is None else {"token": made.token})
        if output != "json" or secret_file is not None:
            hand_over(made.secret)
    row = made.token
    until = f"until {short_instant(row.expires_at)}" if row.expires_at else "until it is revoked"
    where = "made in PostgreSQL itself; " if direct else ""
    say(f"the token {row.name} is {_may(row)}, {until}; {where}it is not shown again", err=True)


@token.command("list")
@click.option("--revoked", is_flag=True, help="Those that were revoked, too.")
@count_option
@limit_option(200)
@output_option
@controllers_option
def list_tokens(revoked: bool, count: bool, limit: int, output: str, controllers: tuple[str, ...]) -> None:
    """List tokens that give nothing outside of the namespaces that you are admin of."""
    if count:
        counted = ask(controllers, lambda client: client.identities.count_tokens(with_revoked=revoked))
        print_count("tokens", counted, output)
        return
    rows = ask(controllers, lambda client: client.identities.tokens(with_revoked=revoked, limit=limit))
    if output == "json":
        print_json(rows)
        return
    columns: list[Column[TokenInfo]] = [
        Column("name", lambda row: row.name),
        Column("may", _may),
        Column("expires", lambda row: short_instant(row.expires_at)),
        Column("last used", lambda row: short_instant(row.last_used_at)),
        Column("created", lambda row: short_instant(row.created_at)),
        Column("by", lambda row: row.created_by),
    ]
    if revoked:
        columns.append(Column("revoked", lambda row: short_instant(row.revoked_at)))
    print_rows(columns, rows, "there is no token that you may see; `cronring token create` makes one")


@token.command()
@click.argument("name", shell_complete=token_name)
@idempotency_key_option
@as_option
@output_option
@controllers_option
def revoke(name: str, as_name: str | None, output: str, controllers: tuple[str, ...]) -> None:
    """Revoke a token: a second later at most, no call with it is answered."""

    async def question(client: "AsyncClient") -> "TokenInfo":
        answer: Awaitable[TokenInfo] = client.identities.revoke_token(name, actor(as_name))
        return await or_nearest(answer, "token", name, lambda: _names(client), "cronring token list")

    row = ask(controllers, question)
    if output == "json":
        print_json(row)
        return
    say(f"the token {row.name} is revoked")


async def _names(client: "AsyncClient") -> list[str]:
    return [row.name for row in await client.identities.tokens()]


@token.command()
@controllers_option
def curl(controllers: tuple[str, ...]) -> None:
    """Print who you are, as curl reads it: so no token stands in a command, where others on the machine see it.

    It is the identity that other commands have: that of your `cronring dev`, of --token-file, or of `cronring login`.

    \b
    Example:
      curl -K <(cronring token curl) http://127.0.0.1:7480/api/v1/cron/jobs
    """
    identity = identity_of(controllers)
    lines = ["silent", "show-error"]
    lines += [f"cacert = {_quoted(str(identity.ca))}"] if identity.ca else []
    lines += [f"header = {_quoted(f'authorization: Bearer {identity.token}')}"] if identity.token else []
    for line in lines:
        say(line)


def _quoted(text: str) -> str:
    """As curl reads it: it knows no escapes but those of quotes, backslashes, tabs and ends of lines."""
    return json.dumps(text, ensure_ascii=False)


def _grants(roles: tuple[str, ...], namespace: str) -> "list[RoleIn]":
    from cronring.client.identities import RoleIn

    split = (role.partition("@") for role in roles)
    return [RoleIn(name, where if at else namespace) for name, at, where in split]


def _may(row: "TokenInfo") -> str:
    return ", ".join(f"{grant.role}@{grant.namespace}" for grant in row.grants) or "-"
