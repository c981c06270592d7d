"""`cronring drill`: see on the own cluster what it promises."""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from cronring.cli.bulk import actor, as_option
from cronring.cli.completion import job_key
from cronring.cli.consent import confirm, require_terminal
from cronring.cli.conversation import ask
from cronring.cli.failures import EXIT_FAILED, Failure
from cronring.cli.interrupts import EXIT_INTERRUPTED
from cronring.cli.options import Duration, controllers_option, output_option
from cronring.cli.output import print_json
from cronring.cli.printing import progress_bar, say
from cronring.schema.duration import measured

if TYPE_CHECKING:
    from cronring.cli.drill.doing import Passed
    from cronring.cli.drill.findings import Findings
    from cronring.cli.drill.plan import DrillOrder, DrillPlan
    from cronring.client import AsyncClient

SHORTEST_S: Final = 2.0


@click.group()
def drill() -> None:
    """Try on your own cluster whether it survives what it must, with consent asked."""


@drill.command("kill-owner")
@click.option("--job", default="", shell_complete=job_key,
              help="Whose primary is to stop (the job's key).  [default: of a job that ticks often]")  # fmt: skip
@click.option("--for", "for_s", envvar="CRONRING_DRILL_KILL_OWNER_FOR", type=Duration(1, 60), default="15s",
              show_default=True, help="For how long, 60s at most.")  # fmt: skip
@click.option("--kill", is_flag=True, help="Kill its process instead (kill -9): only of a `cronring dev`.")
@click.option("--force", is_flag=True, help="Even if no other controller could take over: then its ticks come late.")
@click.option("--yes", is_flag=True, help="Don't ask before doing it.")
@as_option
@output_option
@controllers_option
def kill_owner(
    job: str, for_s: float, kill: bool, force: bool, yes: bool, as_name: str | None, output: str,
    controllers: tuple[str, ...],
) -> None:  # fmt: skip
    """Make the primary of a job stop claiming for a while, and report how late others took its ticks over.

    The controller that is the job's primary claims nothing for --for: no tick, no retry, no run by hand. It keeps its
    lease, its place in the ring, and what runs. So the backups of its slots take its ticks, half a second late, as they
    would if it had died. It claims again by itself when the time is over, when this command ends (Ctrl-C, kill -9), or
    when no other controller is left. With --kill, only on a `cronring dev`, its process is killed instead.

    The report: lateness (p50, p99, max) of the ticks that others took over, beside those of the same jobs before. It
    says who took them, and counts lost and duplicate ticks of all jobs in that time, by the audit.

    Exit codes: 0 it held; 1 a tick was lost, ran twice, or began more than 1 s late; 130 ended by Ctrl-C. It also is 1
    if no tick was taken over, or if the drill was refused.

    \b
    Examples:
      cronring drill kill-owner
      cronring drill kill-owner --job billing.refresh --for 30s
      cronring drill kill-owner --yes -o json
    """
    from cronring.cli.drill.plan import LONGEST_S, DrillOrder, make_plan

    if not SHORTEST_S <= for_s <= LONGEST_S:
        raise click.BadParameter(
            f"it must be from {measured(SHORTEST_S * 1_000)} to {measured(LONGEST_S * 1_000)}", param_hint="--for"
        )
    if kill and force:
        raise click.UsageError("--force is for drills without --kill; with --kill somebody must be left to watch")
    if not yes:
        require_terminal()
    wanted = DrillOrder(job, for_s, kill, force, actor(as_name))
    plan = ask(controllers, lambda client: make_plan(client, wanted))
    _agree(plan, wanted, yes=yes)
    addresses = tuple(dict.fromkeys((*controllers, *plan.addresses)))
    try:
        found = ask(addresses, lambda client: _drill(client, plan))
    except KeyboardInterrupt:
        again = "" if kill else f"; {plan.primary.id} claims again"
        say(err=True)
        say(f"ended early{again}. What became of the ticks: cronring audit --since -2m", err=True)
        raise click.exceptions.Exit(EXIT_INTERRUPTED) from None
    _tell(plan, found, output)
    if not found.held:
        raise click.exceptions.Exit(EXIT_FAILED)


def _agree(plan: "DrillPlan", wanted: "DrillOrder", *, yes: bool) -> None:
    """Says what is about to happen, and asks. Raises Abort, and Failure where a process is not to be killed."""
    from cronring.cli.drill.target import require_dev
    from cronring.cli.drill.words import announced

    if wanted.kill:
        require_dev(plan.primary)
    for line in announced(plan):
        say(line, err=True)
    if not yes:
        confirm()


async def _drill(client: "AsyncClient", plan: "DrillPlan") -> "Findings":
    from cronring.cli.drill.doing import perform
    from cronring.cli.drill.findings import DrillBooks

    view, owners = await client.cluster.get(), await client.cluster.owners(plan.job.key)
    if owners.primary != plan.primary.id or view.database_time is None:
        raise Failure(
            f"the ring has changed since: {owners.primary or 'nobody'} is the primary of {plan.job.key} now. "
            "Nothing was done; start again"
        )
    books = await DrillBooks.open(client, plan, view.database_time)
    with _bar(plan) as passed:
        span = await perform(client, plan, passed)
    say("waiting until what came due is decided ...", err=True)
    return await books.read(client, span)


@contextlib.contextmanager
def _bar(plan: "DrillPlan") -> "Iterator[Passed]":
    """Only where somebody looks: into a pipe click would write a line for it."""
    total = round(plan.wanted.for_s * 10)
    label = f"{plan.primary.id} {'is dead' if plan.wanted.kill else 'claims nothing'}"
    with progress_bar(total, label) as bar:
        yield lambda seconds: bar.update(min(total, round(seconds * 10)) - bar.pos)


def _tell(plan: "DrillPlan", found: "Findings", output: str) -> None:
    from cronring.cli.drill.words import told, verdict

    if output == "json":
        print_json(_json(plan, found) | {"held": found.held, "verdict": verdict(plan, found)})
        return
    for line in told(plan, found):
        say(line)


def _json(plan: "DrillPlan", found: "Findings") -> dict[str, Any]:
    from cronring.cli.output import jsonable

    return {
        "job": plan.job.key,
        "controller": plan.primary.id,
        "killed": plan.wanted.kill,
        "asked_ms": round(plan.wanted.for_s * 1_000),
        "jobs": [each.job for each in plan.ahead],
        **jsonable(found),
    }
