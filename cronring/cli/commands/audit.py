"""`cronring audit`: the proof that every tick ended as it must."""

from typing import TYPE_CHECKING

import click

from cronring.cli.completion import job_key
from cronring.cli.conversation import ask, job_keys, or_nearest
from cronring.cli.failures import EXIT_FAILED
from cronring.cli.instants import instant_option, past, resolved
from cronring.cli.options import DAY_S, Duration, controllers_option, output_option
from cronring.cli.output import print_fields, print_json, short_instant
from cronring.cli.printing import say, say_lines

if TYPE_CHECKING:
    from cronring.client import AsyncClient
    from cronring.client.model import Audit


@click.command("audit")
@instant_option("--since", zone="UTC", help="Ticks from this instant on; else all")
@instant_option("--until", zone="UTC", help="Ticks up to this instant, or the end of this date; else up to now")
@click.option("--job", default="", shell_complete=job_key,
              help="Of one job (its key) alone, removed ones too; its ticks are then walked one by one.")  # fmt: skip
@click.option("--late-after", type=Duration(0, 365 * DAY_S), default="10s", show_default=True,
              help="A tick that started more than this after its run_at is late.")  # fmt: skip
@click.option("--thorough", is_flag=True,
              help="Walk the ticks of every job, not only of those whose counts disagree.")  # fmt: skip
@output_option
@controllers_option
def audit(
    since: str | None, until: str | None, job: str, late_after: float, thorough: bool, output: str,
    controllers: tuple[str, ...],
) -> None:  # fmt: skip
    """Recompute from the schedules which ticks were due, and hold that against the books.

    Each tick is exactly one of: executed, skipped with a reason, running, or pending. Executed is on time, late, caught
    up after it was missed, or backfilled. Pending waits for what runs, or for a runner. These four must be 0:

    \b
      unaccounted  due, and neither executed nor skipped
      duplicates   executed twice by schedule, skipped twice, or both
      early        executions that began before their run_at, or before their tick
      undue        executed or skipped by schedule, and never due

    Jobs whose counts agree are counted only, which costs the same for a thousand ticks as for a billion. With
    --thorough it also finds a missing tick that another one, which never was due, makes up for.

    Exit codes: 0 all four are 0; 1 they are not, and at most 20 of each are listed.

    \b
    Examples:
      cronring audit --since -1d
      cronring audit --job billing.close_month -o json
    """

    async def question(client: "AsyncClient") -> "Audit":
        start = None if since is None else past("--since", since)
        end = None if until is None else resolved(until, end_of_day=True)
        auditing = client.ledger.audit(start, end, job, late_after, thorough=thorough or bool(job))
        return await or_nearest(auditing, "job", job, lambda: job_keys(client))

    answer = ask(controllers, question)
    if output == "json":
        print_json(answer)
    else:
        _print(answer)
    if not answer.clean:
        raise click.exceptions.Exit(EXIT_FAILED)


def _print(answer: "Audit") -> None:
    skipped = ", ".join(f"{reason} {ticks:,}" for reason, ticks in answer.skipped.items())
    ran = (("on time", answer.on_time), ("late", answer.late), ("caught up", answer.caught_up),
           ("backfilled", answer.backfilled))  # fmt: skip
    executed = ", ".join(f"{name} {ticks:,}" for name, ticks in ran if ticks)
    fields = [
        ("ticks due", f"{answer.ticks:,}"),
        ("executed", f"{answer.executed:,}" + (f" ({executed})" if executed else "")),
        ("skipped", f"{sum(answer.skipped.values()):,}" + (f" ({skipped})" if skipped else "")),
        ("running", f"{answer.running:,}"),
        ("pending", f"{answer.pending:,}"),
        ("unaccounted", f"{answer.unaccounted:,}"),
        ("duplicates", f"{answer.duplicates:,}"),
        ("early", f"{answer.early:,}"),
        ("undue", f"{answer.undue:,}"),
    ]
    print_fields(fields)
    for finding in answer.findings:
        times = "" if finding.ticks == 1 else f" ({finding.ticks:,} ticks)"
        say_lines(["", f"{finding.kind}: {finding.job} {short_instant(finding.tick)}{times}"])
        say_lines([f"  {finding.text}", f"  look: {finding.look}"])
    until = short_instant(answer.until)
    walked = f", {answer.walked:,} of them tick by tick" if answer.walked else ""
    verdict = "clean" if answer.clean else "NOT CLEAN"
    say_lines(["", f"{verdict}: {answer.jobs:,} jobs{walked}, up to {until}"])
    if answer.remark:
        say(f"But {answer.remark}.")
    if answer.summarised_until is not None:
        say(f"Retention keeps only counts of some ticks up to {short_instant(answer.summarised_until)}.")
