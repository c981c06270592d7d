"""`cronring webhook`: who is told of what happens to jobs, and what became of each message."""

from typing import TYPE_CHECKING

import click

from cronring.cli.bulk import actor, as_option, note_option
from cronring.cli.completion import job_key
from cronring.cli.conditions import idempotency_key_option, if_match_option
from cronring.cli.conversation import COUNTED_MAX, ask, nothing_found, or_nearest
from cronring.cli.failures import EXIT_FAILED
from cronring.cli.job_options import Label
from cronring.cli.options import (
    ROW_ID,
    WEBHOOK_SECRET,
    WEBHOOK_URL,
    controllers_option,
    limit_option,
    option,
    output_option,
)
from cronring.cli.output import Column, print_fields, print_json, print_rows, short_instant
from cronring.cli.printing import say
from cronring.schema.duration import measured

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from typing import TypeVar

    from cronring.client import AsyncClient
    from cronring.client.notifications import Added, Delivery, Tested, Webhook

    Answer = TypeVar("Answer")

EVENTS = (
    "failed", "completed", "recovered", "late", "timeout_near", "skipped", "paused", "orphaned", "brought_back",
)  # fmt: skip
STATES = ("waiting", "delivered", "failed")


@click.group()
def webhook() -> None:
    """Webhooks: tell a URL when jobs fail, complete, recover, are late, skipped, paused after failures, or orphaned.

    \b
    Examples:
      cronring webhook add pager https://example.com/hooks/cron \\
        --event failed --event late --label team=billing
      cronring webhook test pager
      cronring webhook deliveries pager --state failed
      cronring webhook redeliver pager
    """


@webhook.command()
@click.argument("name")
@click.argument("url", type=WEBHOOK_URL, metavar="URL|@FILE")
@click.option(
    "--event",
    type=click.Choice(EVENTS),
    multiple=True,
    metavar="EVENT",
    help=f"Only these; may be repeated: {', '.join(EVENTS)}.  [default: all but completed]",
)
@click.option(
    "--outcome", multiple=True, help="Of what failed, only what ended so; may be repeated: timed_out, lost..."
)
@click.option("--reason", multiple=True, help="Of skipped ticks, only those for this reason.")
@click.option("--namespace", help="Only of jobs in this namespace.")
@click.option("--module", help="Only of jobs of this module.")
@click.option("--job", metavar="KEY", shell_complete=job_key, help="Only of this job.")
@click.option("--label", type=Label(), multiple=True, help="Only of jobs with this label; may be repeated.")
@option("--webhook-secret", "secret", type=WEBHOOK_SECRET, metavar="whsec_...|@FILE",
        help="The key of its signatures.  [default: one is made]")  # fmt: skip
@as_option
@output_option
@controllers_option
def add(  # noqa: PLR0917 - click passes them by name
    name: str, url: str, event: tuple[str, ...], outcome: tuple[str, ...], reason: tuple[str, ...],
    namespace: str | None, module: str | None, job: str | None, label: tuple[tuple[str, str], ...],
    secret: str | None, as_name: str | None, output: str, controllers: tuple[str, ...],
) -> None:  # fmt: skip
    """Tell URL of what happens from now on. Shows the secret that its receiver needs, once.

    URL is kept encrypted, and lists show its host alone. One with a secret in it is best given as @FILE, as `ps` shows
    command lines to everybody.

    \b
    Example:
      cronring webhook add pager https://example.com/hooks/cron \\
        --event failed --event recovered
    """

    async def question(client: "AsyncClient") -> "tuple[Added, bool]":
        added = await client.notifications.add(
            name, url, secret=secret or "", events=event, reasons=reason, outcomes=outcome, namespace=namespace or "",
            module=module or "", job=job or "", labels=dict(label), by=actor(as_name),
        )  # fmt: skip
        return added, await _has_jobs(client, added.webhook)

    added, has_jobs = ask(controllers, question)
    if not has_jobs:
        say("no job matches now: nothing is told until one does", err=True)
    if output == "json":
        print_json(added)
        return
    say(f"webhook {added.webhook.name} is told of {_wanted(added.webhook)}")
    if not secret:
        say(f"its secret, which is not shown again: {added.secret}")
    say(f"see whether it arrives: cronring webhook test {added.webhook.name}")


@webhook.command("list")
@output_option
@controllers_option
def list_webhooks(output: str, controllers: tuple[str, ...]) -> None:
    """List webhooks, and how their deliveries do."""
    found = ask(controllers, lambda client: client.notifications.list())
    if output == "json":
        print_json(found)
        return
    columns: list[Column[Webhook]] = [
        Column("name", lambda row: row.name),
        Column("state", _state),
        Column("told of", _wanted),
        Column("waiting", lambda row: str(row.waiting), right=True),
        Column("delivered", lambda row: str(row.delivered), right=True),
        Column("failed", lambda row: str(row.failed), right=True),
        Column("origin", lambda row: row.origin),
    ]
    print_rows(columns, found, "there is no webhook; `cronring webhook add` makes one")


@webhook.command()
@click.argument("name")
@output_option
@controllers_option
def show(name: str, output: str, controllers: tuple[str, ...]) -> None:
    """Show one webhook."""
    found = ask(controllers, lambda client: _known(client, client.notifications.get(name), name))
    if output == "json":
        print_json(found)
    else:
        _show(found)


@webhook.command()
@click.argument("name")
@if_match_option
@idempotency_key_option
@output_option
@controllers_option
def remove(name: str, if_match: str, output: str, controllers: tuple[str, ...]) -> None:
    """Remove a webhook, with its log and what waits for it."""
    ask(controllers, lambda client: _known(client, client.notifications.remove(name, etag=if_match), name))
    if output == "json":
        print_json({"removed": name})
        return
    say(f"webhook {name} is removed")


@webhook.command()
@click.argument("name")
@if_match_option
@idempotency_key_option
@output_option
@controllers_option
def enable(name: str, if_match: str, output: str, controllers: tuple[str, ...]) -> None:
    """Tell a webhook again that was disabled: of what happens from now on, and of what waited for it."""
    _set_enabled(controllers, name, output, if_match, enabled=True)


@webhook.command()
@click.argument("name")
@if_match_option
@idempotency_key_option
@note_option
@as_option
@output_option
@controllers_option
def disable(
    name: str, if_match: str, note: str, as_name: str | None, output: str, controllers: tuple[str, ...]
) -> None:
    """Tell a webhook nothing until it is enabled again."""
    _set_enabled(controllers, name, output, if_match, enabled=False, note=note, by=actor(as_name))


@webhook.command()
@click.argument("name")
@output_option
@controllers_option
def test(name: str, output: str, controllers: tuple[str, ...]) -> None:
    """Send a signed event "test" now, once, and show the answer. Exits with 1 if that wasn't 2xx."""
    found = ask(controllers, lambda client: _known(client, client.notifications.test(name), name))
    if output == "json":
        print_json(found)
    else:
        _show_test(found)
    if not found.delivered:
        raise click.exceptions.Exit(EXIT_FAILED)


@webhook.command()
@click.argument("name", required=False)
@click.option("--state", type=click.Choice(STATES), help="Only these.")
@click.option("--job", metavar="KEY", shell_complete=job_key, help="Only those about this job.")
@limit_option(50)
@output_option
@controllers_option
def deliveries(
    name: str | None, state: str | None, job: str | None, limit: int, output: str, controllers: tuple[str, ...]
) -> None:
    """List what was delivered to NAME, or to all: the newest first, with tries, the last answer and the next try."""
    found = ask(
        controllers,
        lambda client: _known(
            client, client.notifications.deliveries(name or "", state or "", job or "", limit), name or ""
        ),
    )
    if output == "json":
        print_json(found)
        return
    columns: list[Column[Delivery]] = [
        Column("id", lambda row: str(row.id), right=True),
        Column("webhook", lambda row: row.webhook),
        Column("event", lambda row: row.event),
        Column("job", lambda row: row.job),
        Column("state", lambda row: row.state),
        Column("tries", lambda row: str(row.attempts), right=True),
        Column("at", lambda row: short_instant(row.created_at)),
        Column("next try", lambda row: short_instant(row.next_try_at)),
        Column("answer", _answer),
    ]
    print_rows(columns, found, "" if found else nothing_found(
        controllers, "deliveries", {"state": state, "job": job},
        lambda client: client.notifications.deliveries(name or "", limit=COUNTED_MAX),
        "nothing was delivered, and nothing waits",
    ))  # fmt: skip


@webhook.command()
@click.argument("name")
@click.argument("delivery_id", metavar="[DELIVERY]", type=ROW_ID, required=False)
@idempotency_key_option
@output_option
@controllers_option
def redeliver(name: str, delivery_id: int | None, output: str, controllers: tuple[str, ...]) -> None:
    """Deliver again, with the same id: one DELIVERY, or all of NAME that have failed for good."""
    count = ask(controllers, lambda client: _known(client, client.notifications.redeliver(name, delivery_id), name))
    if output == "json":
        print_json({"redelivered": count})
        return
    say(f"tried again: {count}")


def _set_enabled(
    controllers: tuple[str, ...], name: str, output: str, if_match: str, *, enabled: bool, note: str = "", by: str = ""
) -> None:
    found = ask(
        controllers,
        lambda client: _known(
            client, client.notifications.set_enabled(name, enabled=enabled, reason=note, by=by, etag=if_match), name
        ),
    )
    if output == "json":
        print_json(found)
    else:
        say(f"webhook {name} is {_state(found)}")


async def _known(client: "AsyncClient", answer: "Awaitable[Answer]", name: str) -> "Answer":
    async def names() -> list[str]:
        return [each.name for each in await client.notifications.list()]

    return await or_nearest(answer, "webhook", name, names, "cronring webhook list") if name else await answer


async def _has_jobs(client: "AsyncClient", row: "Webhook") -> bool:
    """Whether any job is there now that it is about; true where it is about all."""
    from cronring.client.errors import NotFound

    if row.job:
        try:
            await client.jobs.get(row.job)
        except NotFound:
            return False
    if not (row.namespace or row.module or row.labels):
        return True
    return bool(await client.jobs.list(row.namespace, row.module, limit=1, labels=row.labels))


def _show(row: "Webhook") -> None:
    print_fields([
        ("name", row.name),
        ("origin", row.origin),
        ("told of", _wanted(row)),
        ("state", _state(row) + (f" ({row.disabled_reason})" if row.disabled_reason else "")),
        ("waiting", str(row.waiting)),
        ("delivered", str(row.delivered)),
        ("failed", str(row.failed)),
        ("created", f"{short_instant(row.created_at)} by {row.created_by}"),
    ])  # fmt: skip


def _show_test(found: "Tested") -> None:
    word = "delivered" if found.delivered else "not delivered"
    print_fields([
        ("outcome", f"{word}, in {measured(found.took_ms)}"),
        ("answer", f"HTTP {found.status}" if not found.error else found.error),
        ("event id", found.event_id),
        ("sent", found.sent),
    ])  # fmt: skip


def _state(row: "Webhook") -> str:
    return "enabled" if row.disabled_at is None else f"disabled since {short_instant(row.disabled_at)}"


def _wanted(row: "Webhook") -> str:
    words = ", ".join(row.events) or "everything but completed"
    if row.reasons:
        words += f" (skipped: {', '.join(row.reasons)})"
    if row.outcomes:
        words += f" (failed: {', '.join(row.outcomes)})"
    which = [f"namespace {row.namespace}"] * bool(row.namespace) + [f"module {row.module}"] * bool(row.module)
    which += [f"job {row.job}"] * bool(row.job) + [f"{name}={value}" for name, value in row.labels.items()]
    return f"{words} of {', '.join(which) or 'all jobs'}"


def _answer(row: "Delivery") -> str:
    if row.last_error:
        return row.last_error
    return f"HTTP {row.last_status}" if row.last_status else "-"
