"""`cronring apply`: the jobs of a set are what its files say."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from cronring.cli.bulk import actor, as_option, note_option
from cronring.cli.commands.job_writes import create_job
from cronring.cli.conversation import ask
from cronring.cli.failures import EXIT_FAILED, Failure
from cronring.cli.files.reading import Files, FileSet, found_in
from cronring.cli.job_lines import JobLines
from cronring.cli.options import controllers_option, output_option
from cronring.cli.output import print_json
from cronring.cli.printing import progress_bar, say
from cronring.cli.set_rows import as_json, told

if TYPE_CHECKING:
    from cronring.client import AsyncClient
    from cronring.client.sets import AppliedSet, HowToApply

EXIT_WOULD_CHANGE: Final = 2
_MANY: Final = 1_000  # jobs, that take the controllers a while
_DOES: Final = ("created", "changed", "adopted", "removed", "released")


class _Strict(click.Command):
    """Its exit code 2 says that something would change, so wrong usage is 1."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            error.exit_code = EXIT_FAILED  # type: ignore[misc]  # click declares a class variable, and reads it here
            raise


class _Outcome(NamedTuple):
    wanted: FileSet
    applied: "AppliedSet"


@click.command("apply", cls=_Strict)
@click.argument("paths", metavar="FILE|DIR...", nargs=-1, required=True, type=click.Path())
@click.option("--prune", is_flag=True, help="Remove jobs that the set owns and its files don't have any more.")
@click.option(
    "--release", is_flag=True, help="Keep jobs that the files don't have any more, and let another set adopt them."
)
@click.option("--adopt", is_flag=True, help="Take jobs that were made by hand, and that no set owns.")
@click.option("--dry-run", is_flag=True, help="Only say what would change; exit code 2 if anything would.")
@click.option("--hours", type=click.IntRange(1, 8784), default=24, show_default=True, help="Whose ticks are compared.")
@click.option("--if-match", "etag", metavar="ETAG", envvar="CRONRING_APPLY_IF_MATCH", default="",
              help="Only do what the dry run with this etag has shown (-o json names it).")  # fmt: skip
@note_option
@as_option
@output_option
@controllers_option
def apply(
    paths: tuple[str, ...], note: str, as_name: str | None, output: str, controllers: tuple[str, ...], **given: Any
) -> None:
    """Make the jobs of a set what FILE says: YAML or TOML. A folder counts with all that is below it.

    Changes that were made by hand are shown, and set back. Jobs that the file lacks stay, unless --prune. All of a
    set is done, or nothing. Pauses stay.

    + are jobs and ticks that are new, - ones that go, ~ ones that change, ! what is refused.

    Exit codes: 0 it is done, or there is nothing to do; 1 it is refused; with --dry-run 2 if something would change.

    \b
    Examples:
      cronring apply billing.yaml --dry-run
      cronring apply jobs/ --prune --note "release 7"
    A file (more in docs/apply.md; `cronring jobs export` writes one):
      set: billing-prod
      jobs:
        - verb: billing.close_month
          name: berlin
          cron: 0 6 1 * *
          timezone: Europe/Berlin
    """
    from cronring.client.sets import HowToApply

    if given["prune"] and given["release"]:
        raise Failure("--prune and --release exclude each other; give one of them")
    wanted = _read(paths)
    how = HowToApply(**given)
    if how.etag and len(wanted) > 1:
        raise Failure(f"--if-match is of one set, and these are {len(wanted)}; give the files of one")
    outcomes = ask(controllers, lambda client: _apply(client, wanted, how, actor(as_name), note))
    _tell(outcomes, how, output)


def _read(paths: tuple[str, ...]) -> list[FileSet]:
    """Raises Failure with everything that is wrong with these files."""
    found = found_in(paths)
    files = Files(JobLines(create_job))
    with progress_bar(sum(path.stat().st_size for path in found if path.exists()), "reading") as bar:
        for path in found:
            files.read(path)
            bar.update(path.stat().st_size)
    if files.faults:
        # Lines of their own, as editors read FILE:LINE at the beginning of one.
        raise Failure("\n".join(map(str, files.faults)), prefix="")
    return [files.sets[of] for of in sorted(files.sets)]


async def _apply(
    client: "AsyncClient", wanted: Sequence[FileSet], how: "HowToApply", by: str, note: str
) -> "list[_Outcome]":
    """Of several sets all are looked at before the first is changed: else a refusal would come half-way."""
    from dataclasses import replace

    async def each(how: "HowToApply") -> list[_Outcome]:
        done = []
        for one in wanted:
            if len(one.jobs) >= _MANY:
                say(f"{one.name}: {'comparing' if how.dry_run else 'applying'} {len(one.jobs):,} jobs ...", err=True)
            jobs = [job.job for job in one.jobs.values()]
            applied = await client.sets.apply(one.name, jobs, how, one.namespace, by=by, note=note)
            done.append(_Outcome(one, applied))
            if applied.counts["refused"] and not how.dry_run:
                break
        return done

    if len(wanted) > 1 and not how.dry_run:
        rehearsed = await each(replace(how, dry_run=True))
        if any(outcome.applied.counts["refused"] for outcome in rehearsed):
            return rehearsed
    return await each(how)


def _tell(outcomes: "Sequence[_Outcome]", how: "HowToApply", output: str) -> None:
    refused = [outcome.wanted.name for outcome in outcomes if outcome.applied.counts["refused"]]
    changes = any(outcome.applied.counts[name] for outcome in outcomes for name in _DOES)
    if output == "json":
        print_json([as_json(outcome.wanted, outcome.applied) for outcome in outcomes])
    else:
        for outcome in outcomes:
            for line, colour in told(outcome.wanted, outcome.applied, dry_run=not outcome.applied.applied):
                say(line, colour=colour)
    if refused:
        raise Failure(f"nothing of {', '.join(refused)} was changed: see what is refused")
    if how.dry_run and changes:
        raise click.exceptions.Exit(EXIT_WOULD_CHANGE)
