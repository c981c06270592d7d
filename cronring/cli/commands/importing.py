"""`cronring import`: jobs from elsewhere."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from cronring.cli.conversation import ask
from cronring.cli.failures import Failure
from cronring.cli.job_options import VerbParam, whoami
from cronring.cli.options import controllers_option, option, output_option
from cronring.cli.output import print_json, short_instant
from cronring.cli.printing import say, say_source
from cronring.cli.schedules import parse_given
from cronring.schema.instant import from_us
from cronring.schema.keys import VerbName

if TYPE_CHECKING:
    from cronring.client import AsyncClient
    from cronring.client.model import Job
    from cronring.schema.crontab import Crontab

_NAME: Final = "crontab"


@click.group("import")
def import_group() -> None:
    """Take over jobs from elsewhere."""


@import_group.command("crontab")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("--as", "form", type=click.Choice(["module", "text", "jobs"]), default="module", show_default=True,
              envvar="CRONRING_IMPORT_CRONTAB_AS",
              help="module: Python that runs the commands. text: the schedules. jobs: made in a cluster.")  # fmt: skip
@click.option("--write", "-O", "target", type=click.Path(dir_okay=False), envvar="CRONRING_IMPORT_CRONTAB_WRITE",
              help="Write to this file, which must not exist.  [standard output]")  # fmt: skip
@click.option("--verb", type=VerbParam(), help="With --as jobs, the verb that is given the commands (see import verb).")
@click.option("--system", is_flag=True, help="A user's name stands before each command, as in /etc/crontab.")
@click.option("--timezone", metavar="ZONE", default="", help="Where the crontab has no CRON_TZ: the machine's zone.")
@option("--namespace", default="default", show_default=True, help="Where the jobs live (of the text form).")
@output_option
@controllers_option
def import_crontab(  # noqa: PLR0917 - click passes them by name
    file: str,
    form: str,
    target: str | None,
    verb: VerbName | None,
    system: bool,
    timezone: str,
    namespace: str,
    output: str,
    controllers: tuple[str, ...],
) -> None:
    """Make a module of a crontab (FILE, or - for standard input).

    Times are translated so that each job ticks when cron runs it: names, nicknames like @daily, steps, cron's rule for
    its two day fields, CRON_TZ. The module's verbs run the commands as cron does, by the file's SHELL and with its
    variables, and fail when a command does.

    What is not translated, or is but works in another way, is said on standard error by its line. Exit code 1 if
    anything is not translated; the rest is written all the same. -o json prints an object instead: the `text` (null
    where -O names a `file`) or the `jobs` that were made, and the `remarks`.

    \b
    Examples:
      cronring import crontab mycrontab --timezone Europe/Berlin > nightly.py
      crontab -l | cronring import crontab - -O nightly.py
      cronring import crontab /etc/crontab --system -O system.py
      cronring import crontab mycrontab --as text          what would tick when?
      cronring import crontab mycrontab --as jobs --verb commands.execute
    """
    if (form == "jobs") != (verb is not None):
        raise click.UsageError("--as jobs and --verb go together: --as jobs --verb commands.execute")
    if verb is not None and target is not None:
        raise click.UsageError("-O is of a file, and --as jobs writes none")
    from cronring.schema.crontab import read_crontab

    zone = parse_given("manual", from_us(0), timezone).policy.timezone if timezone not in {"", "UTC"} else timezone
    crontab = read_crontab(crontab_text(file), system=system, timezone=zone)
    jobs: list[Job] = []
    text: str | None = None
    if verb is not None:
        jobs = make_jobs(crontab, verb, controllers)
    elif crontab.entries:
        text = write(written(crontab, form, file, module_name(target or file), namespace), target)
    if output == "json":
        print_json({"text": text, "file": target, "jobs": jobs, "entries": len(crontab.entries),
                    "remarks": crontab.remarks})  # fmt: skip
    else:
        tell(text, jobs)
    report(crontab, file)
    sys.exit(1 if any(remark.lost for remark in crontab.remarks) or not crontab.entries else 0)


@import_group.command("verb")
@output_option
@click.option("--write", "-O", "target", type=click.Path(dir_okay=False), envvar="CRONRING_IMPORT_VERB_WRITE",
              help="Write to this file, which must not exist.  [standard output]")  # fmt: skip
def import_verb(target: str | None, output: str) -> None:
    """Write a module with one verb, `execute`, that runs the command it is given as cron would.

    It is for `cronring import crontab --as jobs`: jobs then come and go without a deployment.

    \b
    Example:
      cronring import verb -O commands.py
      cronring runner commands.py &
      cronring import crontab mycrontab --as jobs --verb commands.execute
    """
    from cronring.schema.crontab_module import command_source

    text = write(command_source(), target)
    if output == "json":
        print_json({"text": text, "file": target})
    else:
        tell(text, [])


def tell(text: str | None, jobs: "list[Job]") -> None:
    if text is not None:
        say_source(text)
    for job in jobs:
        say(f"{job.key}  {job.schedule}  next {short_instant(job.next_execution)}")


def make_jobs(crontab: "Crontab", verb: VerbName, controllers: tuple[str, ...]) -> "list[Job]":
    """A job of the verb for each entry, named by its command. Those that are there already stay as they are."""
    from cronring.client.model import JobSpec
    from cronring.client.payloads import JsonText
    from cronring.schema.crontab_module import TIMEOUT_MS, command_payload, verb_names

    names = verb_names(crontab.entries)

    async def question(client: "AsyncClient") -> "list[Job]":
        jobs = []
        for entry in crontab.entries:
            payload = JsonText(command_payload(entry))
            spec = JobSpec(entry.pattern, entry.policy(), None, payload, {"made-by": "import-crontab"}, TIMEOUT_MS)
            name = names[entry.line]
            jobs.append(await client.jobs.create(verb.module, verb.verb, name, spec, verb.namespace, whoami()))
        return jobs

    return ask(controllers, question)


def crontab_text(file: str) -> str:
    """Raises Failure. Bytes that are no UTF-8 are read as Latin-1, which has a meaning for each."""
    try:
        with click.open_file(file, "rb") as opened:
            source: bytes = opened.read()
    except OSError as error:
        raise Failure(f"{file}: {error.strerror}") from error
    try:
        return source.decode()
    except UnicodeDecodeError:
        return source.decode("latin-1")


def written(crontab: "Crontab", form: str, file: str, name: str, namespace: str) -> str:
    from cronring.schema.crontab_module import crontab_schema, crontab_source
    from cronring.schema.text import print_module

    source = "from standard input" if file == "-" else Path(file).name
    if form == "module":
        return crontab_source(crontab, source)
    return print_module(crontab_schema(crontab, name, source, namespace))


def module_name(file: str) -> str:
    """A module's name of a file's: letters, digits and _, and no digit first."""
    stem = "".join(char if char.isascii() and char.isalnum() else "_" for char in Path(file).stem).strip("_")
    return stem if stem and not stem[0].isdigit() else f"{_NAME}_{stem}".strip("_")


def write(text: str, target: str | None) -> str | None:
    """To the file, if there is one; else it comes back, to be printed. Raises Failure rather than write over any."""
    if target is None:
        return text
    try:
        with Path(target).open("x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError as error:
        raise Failure(f"{target} exists already; remove it, or name another file") from error
    except OSError as error:
        raise Failure(f"{target}: {error.strerror}") from error
    return None


def report(crontab: "Crontab", file: str) -> None:
    for remark in crontab.remarks:
        level, colour = ("not translated", "red") if remark.lost else ("note", "cyan")
        say(f"{file}:{remark.line}: {level}: {remark.message}", err=True, colour=colour)
        if remark.remedy:
            say(f"    {remark.remedy}", err=True)
    lost = sum(remark.lost for remark in crontab.remarks)
    entries = len(crontab.entries)
    say(f"{entries} job{'' if entries == 1 else 's'} translated, {lost} line{'' if lost == 1 else 's'} not", err=True)
