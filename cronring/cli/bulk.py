"""One order to many jobs: which ones, a look before, a bar while it goes on, and a list of what failed."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click

from cronring.cli.conditions import refuse_etag_of_many
from cronring.cli.consent import LOOK_FIRST, confirm
from cronring.cli.conversation import ask
from cronring.cli.failures import EXIT_FAILED, Failure
from cronring.cli.job_options import Label, labels_of, whoami
from cronring.cli.options import count, option
from cronring.cli.output import Column, print_json, print_rows
from cronring.cli.printing import progress_bar, say
from cronring.schema.filters import STATUSES

if TYPE_CHECKING:
    from cronring.client import AsyncClient
    from cronring.client.model import JobSpec, Progress

Command = TypeVar("Command", bound=Callable[..., Any])

_DONE: Final = {
    "pause": "paused", "resume": "resumed", "skip_next": "told to skip their next tick", "trigger": "triggered",
    "cancel": "cancelled", "restore": "restored", "delete": "deleted", "update": "changed",
}  # fmt: skip


class Many(NamedTuple):
    """Which jobs."""

    namespace: str
    module: str
    verb: str
    status: str
    labels: dict[str, str]
    text: str = ""

    @classmethod
    def taken_from(cls, values: dict[str, Any]) -> "Many":
        """What `many_options` gave, which leaves `values`."""
        labels, text = labels_of(values.pop("label")), values.pop("filter") or ""
        namespace, module, verb, status = (values.pop(name) or "" for name in ("namespace", "module", "verb", "status"))
        return cls(namespace, module, verb, status, labels, text)

    @property
    def given(self) -> bool:
        return any(self)


expect_option = click.option(
    "--expect", type=count(0), metavar="N", help="Do nothing unless exactly N jobs match; of many jobs."
)
as_option = option(
    "--as", "as_name", metavar="NAME", help="A remark on who asks, kept beside the token's name.  [default: user@host]"
)
note_option = click.option("--note", default="", help="Why; kept, and shown to whoever looks.")


def actor(as_name: str | None) -> str:
    return as_name or whoami()


def many_options(command: Command) -> Command:
    """In place of a KEY: all jobs that match."""
    options = (
        click.option("--label", type=Label(), multiple=True, help="All jobs with this label; may be repeated."),
        click.option("--filter", metavar="TEXT", help="All jobs that fit these words, as `jobs list` takes them."),
        click.option("--module", help="All jobs of this module."),
        click.option("--namespace", help="All jobs in this namespace."),
        click.option("--verb", help="All jobs of verbs with this name."),
        click.option(
            "--status",
            type=click.Choice(list(STATUSES)),
            metavar="STATUS",
            help="Of these, only those in this one, as `cronring jobs list` shows it.",
        ),
        click.option("--dry-run", is_flag=True, help="Only say what would become of which jobs."),
        click.option("--yes", is_flag=True, help="Don't ask before doing it to many jobs."),
    )
    for each in reversed(options):
        command = each(command)
    return command


def one_or_many(key: str | None, many: Many, of_many: Mapping[str, bool | int | None]) -> None:
    """Raises UsageError unless exactly one of them is given, and with a KEY nothing that is `of_many` alone.

    `of_many`: by option; None and False: it isn't given.
    """
    if key and many.given:
        raise click.UsageError("give either a KEY, or which jobs (--label, --module, --filter ...), not both")
    if many.given:
        refuse_etag_of_many()
    if not key and not many.given:
        raise click.UsageError(
            "which job? Give its KEY; or which jobs: --label, --module, --filter, --namespace or --verb"
        )
    named = [option for option, value in of_many.items() if value is not None and value is not False]
    if key and named:
        raise click.UsageError(f"{', '.join(named)}: for many jobs alone; one is done at once")


class BulkOrder(NamedTuple):
    """What is to become of them. `action`: a key of _DONE. `expected`: how many; None: any number.

    `spec`, `fields`: of an update, as `client.jobs.update` takes them.
    """

    action: str
    note: str
    by: str
    until: datetime | None = None
    expected: int | None = None
    spec: "JobSpec | None" = None
    fields: Sequence[str] = ()


def order_many(
    controllers: tuple[str, ...], many: Many, wanted: BulkOrder, *, dry_run: bool, yes: bool, output: str
) -> None:
    """Exits with 1 where any of them failed."""
    if dry_run or not yes:
        rehearsed = _ordered(controllers, many, wanted, dry_run=True)
        if not rehearsed:
            raise Failure("no job matches; `cronring jobs list` takes the same options")
        if dry_run:
            _tell(rehearsed, wanted, output, dry_run=True)
            return
        confirm([_counted(rehearsed, wanted, "would be")], LOOK_FIRST)
        if wanted.action in {"delete", "update"}:  # what was not there to be confirmed stays as it is
            wanted = wanted._replace(expected=len(rehearsed))
    done = _ordered(controllers, many, wanted, dry_run=False)
    _tell(done, wanted, output, dry_run=False)
    if any(row.problem for row in done):
        raise click.exceptions.Exit(EXIT_FAILED)


def _ordered(controllers: tuple[str, ...], many: Many, wanted: BulkOrder, *, dry_run: bool) -> "list[Progress]":
    """How it went with each, the last word on it where a controller died in the middle."""

    async def question(client: "AsyncClient") -> "dict[str, Progress]":
        rows: dict[str, Progress] = {}
        progress = client.jobs.control(
            wanted.action, namespace=many.namespace, module=many.module, verb=many.verb, status=many.status,
            labels=many.labels, text=many.text, note=wanted.note, by=wanted.by, until=wanted.until, dry_run=dry_run,
            expected=wanted.expected, spec=wanted.spec, fields=wanted.fields,
        )  # fmt: skip
        with progress_bar(0, "looking" if dry_run else "jobs", show_pos=True) as bar:
            async for row in progress:
                bar.length = row.total
                if row.key:
                    before = rows.get(row.key)
                    # Done by a controller that died before it had gone through all of them.
                    kept = before is not None and before.done and not before.unchanged and row.unchanged
                    rows[row.key] = before if kept and before is not None else row
                    bar.update(row.position - bar.pos)
        return rows

    return list(ask(controllers, question).values())


def _tell(rows: "Sequence[Progress]", wanted: BulkOrder, output: str, *, dry_run: bool) -> None:
    if output == "json":
        print_json({
            "action": wanted.action,
            "dry_run": dry_run,
            "total": len(rows),
            "done": sum(row.done and not row.unchanged for row in rows),
            "unchanged": sum(row.unchanged for row in rows),
            "failed": [{"key": row.key, "problem": row.problem} for row in rows if row.problem],
            "jobs": [{"key": row.key, "unchanged": row.unchanged} | dict(row.details) for row in rows if row.done],
        })  # fmt: skip
        return
    if dry_run:
        columns: list[Column[Progress]] = [
            Column("job", lambda row: row.key),
            Column("would be", lambda row: _outcome(row, wanted)),
        ]
        print_rows(columns, rows, "")
    else:
        for row in rows:
            if row.problem:
                say(f"{row.key}: {row.problem}", err=True)
    say(_counted(rows, wanted, "would be" if dry_run else "are"), err=dry_run)


def _outcome(row: "Progress", wanted: BulkOrder) -> str:
    if row.problem:
        return f"refused: {row.problem}"
    if row.unchanged:
        return "unchanged: it is so already"
    details = ", ".join(f"{name} {value}" for name, value in row.details.items())
    return f"{_DONE[wanted.action]}{f' ({details})' if details else ''}"


def _counted(rows: "Sequence[Progress]", wanted: BulkOrder, verb: str) -> str:
    done = sum(row.done and not row.unchanged for row in rows)
    unchanged, refused = sum(row.unchanged for row in rows), sum(bool(row.problem) for row in rows)
    parts = [f"{done} of {len(rows)} jobs {verb} {_DONE[wanted.action]}"]
    parts += [f"{unchanged} stay as they are"] if unchanged else []
    parts += [f"{refused} {'would fail' if verb == 'would be' else 'failed'}"] if refused else []
    return ", ".join(parts)
