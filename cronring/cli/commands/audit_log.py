"""`cronring audit-log list|export|verify`: who changed what, who was refused, and whether the record is whole."""

from typing import TYPE_CHECKING, Any, Final

import click

from cronring.cli.commands.audit_chain import export, verify
from cronring.cli.completion import principal_name
from cronring.cli.conversation import COUNTED_MAX, ask, nothing_found
from cronring.cli.instants import instant_option, resolved
from cronring.cli.options import controllers_option, limit_option, output_option
from cronring.cli.output import Column, print_json, print_rows, short_instant
from cronring.cli.printing import say

if TYPE_CHECKING:
    from cronring.client.audit_log import AuditLogEntry

# A table of 80 places: a number, an instant, and these.
WHO_WIDTH: Final = 18
WHAT_WIDTH: Final = 28


@click.group("audit-log")
def audit_log() -> None:
    """The audit log: who changed what, from where, and who was refused.

    Rows are sealed into a chain of hashes, a second or so after they were written. `verify` finds what was changed or
    deleted since. (`cronring audit` is another thing: whether every tick ended as it must.)
    """


@audit_log.command("list")
@instant_option("--since", zone="UTC", help="Rows from this instant on")
@instant_option("--until", zone="UTC", help="Rows before this instant, or up to the end of this date")
@click.option("--principal", default="", metavar="KIND:NAME", shell_complete=principal_name,
              help="Of one caller, such as token:ci or user:corp/ada@example.org.")  # fmt: skip
@click.option("--method", default="", help="Of methods with this in their names, such as PauseJob.")
@click.option("--namespace", default="", help="Of one namespace.")
@click.option("--subject", default="", help='Of what has this in its name, such as "job billing/close".')
@click.option("--refused", is_flag=True, help="Only what was refused.")
@click.option("--changes", is_flag=True, help="Only what was changed.")
@limit_option(50)
@output_option
@controllers_option
def list_audit_log(  # noqa: PLR0917 - click passes them by name
    since: str | None, until: str | None, principal: str, method: str, namespace: str, subject: str, refused: bool,
    changes: bool, limit: int, output: str, controllers: tuple[str, ...],
) -> None:  # fmt: skip
    """List changes and refusals, the latest first.

    You see those of namespaces that you are admin of. What concerns the whole cluster, refusals among it, takes admin
    in all namespaces. SEQ is a row's position in the
    chain. What stood before and after, and from where, is in `-o json`.

    \b
    Examples:
      cronring audit-log list --since -1d --refused
      cronring audit-log list --subject "job billing/close" -o json
    """
    if refused and changes:
        raise click.UsageError("give --refused or --changes; without either, both are shown")
    texts = {"principal": principal, "method": method, "namespace": namespace, "subject": subject}
    given: dict[str, Any] = {
        "since": None if since is None else resolved(since),
        "until": None if until is None else resolved(until, end_of_day=True),
        **texts,
    }
    rows = ask(
        controllers,
        lambda client: client.audit_log.list(**given, refused_only=refused, changes_only=changes, limit=limit),
    )
    if output == "json":
        print_json(rows)
        return
    if not rows:
        filters = {"since": since, "until": until, **texts, "refused": refused, "changes": changes}
        nothing = nothing_found(
            controllers, "rows", filters, lambda client: client.audit_log.list(limit=COUNTED_MAX),
            "there is nothing in the audit log of what you are admin of",
        )  # fmt: skip
        say(nothing, err=True)
        return
    columns: list[Column[AuditLogEntry]] = [
        Column("seq", lambda row: str(row.seq) if row.seq else "unsealed", right=True),
        Column("at", lambda row: short_instant(row.at)),
        Column("who", lambda row: _cut(row.principal, WHO_WIDTH)),
        Column("what", lambda row: _cut(_what(row), WHAT_WIDTH)),
    ]
    print_rows(columns, rows, "")


def _what(row: "AuditLogEntry") -> str:
    method = row.method.rpartition("/")[2]
    if row.refused is None:
        return f"{method} {row.subject}"
    times = f" x{row.times}" if row.times > 1 else ""
    return f"REFUSED{times} {method}"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


for command in (export, verify):
    audit_log.add_command(command)
