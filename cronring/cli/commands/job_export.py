"""`cronring jobs export`: jobs as a file that `cronring apply` takes."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from cronring.cli.conversation import ask
from cronring.cli.failures import Failure
from cronring.cli.files.writing import FORMATS, toml_lines, yaml_lines
from cronring.cli.job_options import Label, labels_of
from cronring.cli.options import controllers_option
from cronring.cli.printing import progress_bar, say, say_source

if TYPE_CHECKING:
    from cronring.client import AsyncClient
    from cronring.client.many import JobToMake
    from cronring.schema.filters import JobQuery


@click.command("export")
@click.option("--namespace", default="default", show_default=True, help="Whose jobs.")
@click.option("--label", type=Label(), multiple=True, help="Only jobs with this label; may be repeated.")
@click.option("--module", default="", help="Only jobs of this module.")
@click.option("--verb", default="", help="Only jobs of verbs with this name.")
@click.option(
    "--set",
    "set_name",
    default="",
    metavar="NAME",
    envvar="CRONRING_JOBS_EXPORT_SET",
    help="Only jobs that this set owns.",
)
@click.option("--name", default="", metavar="NAME",
              help="The set that the file names.  [--set's, or exported]")  # fmt: skip
@click.option("--format", type=click.Choice(FORMATS), default="yaml", show_default=True, help="Of the file.")
@controllers_option
def export_jobs(
    namespace: str, label: tuple[tuple[str, str], ...], module: str, verb: str, set_name: str, name: str,
    controllers: tuple[str, ...], **how: str,
) -> None:  # fmt: skip
    """Write jobs that were made through the API to stdout, as a file that `cronring apply` takes.

    Nothing is written before all of it is there. What modules declare is left out: their file is the module. So are
    pauses, history, and what a verb gives its jobs anyway.

    \b
    Examples:
      cronring jobs export --set billing-prod > billing.yaml
      cronring jobs export --label workspace=ws_3 --name ws_3 > ws_3.yaml
      cronring apply ws_3.yaml --adopt --dry-run
    """
    from cronring.schema.filters import JobQuery

    if set_name and (label or module or verb):
        raise click.UsageError("--set is all of its jobs; leave out --label, --module and --verb")
    where = JobQuery(namespace, module, verb, labels_of(label))
    head = {"set": name or set_name or "exported", "namespace": namespace}
    jobs = ask(controllers, lambda client: _exported(client, where, set_name))
    if not jobs:
        raise Failure("no job matches that was made through the API; `cronring jobs list` shows all jobs")
    lines = yaml_lines if how["format"] == "yaml" else toml_lines
    for part in list(lines(head, _counted(jobs))):
        say_source(part)
    say(f"{len(jobs):,} jobs", err=True)


async def _exported(client: "AsyncClient", where: "JobQuery", set_name: str) -> "list[JobToMake]":
    return [job async for job in client.sets.export(where, set_name)]


def _counted(jobs: "list[JobToMake]") -> "Iterator[JobToMake]":
    with progress_bar(len(jobs), "exporting") as bar:
        for job in jobs:
            yield job
            bar.update(1)
