"""`cronring lint`: what is allowed in a module's schedules, and probably not meant."""

import math
import re
import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from cronring.cli.clock import wall_now
from cronring.cli.conversation import ask
from cronring.cli.execution_rows import duration_ms
from cronring.cli.options import Addresses, count, option, output_option
from cronring.cli.output import print_json
from cronring.cli.printing import say
from cronring.schema.instant import to_us
from cronring.schema.lint_finding import RULES, WARNING

if TYPE_CHECKING:
    from cronring.client import AsyncClient
    from cronring.client.model import Job
    from cronring.schema.lint import LintFinding
    from cronring.schema.module import Module, Verb

_FEWEST_RUNS: Final = 5  # that say something about durations
_QUANTILE: Final = 0.95


@click.command(epilog="Rules: " + "; ".join(f"{name}: {words}" for name, words in RULES.items()) + ".")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
@click.option("--ignore", type=click.Choice(list(RULES)), multiple=True, metavar="RULE", help="Leave out this rule.")
@click.option("--herd", type=count(2), default=5, show_default=True,
              help="So many verbs at one instant are a herd.")  # fmt: skip
@click.option("--controllers", "--controller", type=Addresses(),
              help="Ask these how long runs have taken, and for jobs made through the API.  [not asked]")  # fmt: skip
@click.option("--runs", type=click.IntRange(_FEWEST_RUNS, 10_000), default=100, show_default=True,
              help="How many of a job's latest runs are asked for.")  # fmt: skip
@option("--namespace", default="default", show_default=True, help="Where the jobs live (a text form says so itself).")
@option("--python", metavar="PATH", help="The interpreter that imports .py files.  [default: this one]")
@output_option
def lint(
    files: tuple[str, ...],
    ignore: tuple[str, ...],
    herd: int,
    controllers: tuple[str, ...] | None,
    runs: int,
    namespace: str,
    python: str | None,
    output: str,
) -> None:
    """Look for schedules in FILES (modules, or schemas' text forms) that are allowed, and probably not meant.

    Each finding says what happens, and what to write instead. Exit code 1 if there is a warning; notes alone are 0.

    \b
    Examples:
      cronring lint billing.py reports.py
      cronring lint billing.py --ignore clock-change --ignore herd
      cronring lint billing.py --controllers 127.0.0.1:7400  (and past runs)
      cronring lint billing.schema -o json | jq -r '.[].rule'

    --controllers is read from CRONRING_LINT_CONTROLLERS here, as lint asks nobody unless it is told to.
    """
    from cronring.cli.modules import described
    from cronring.schema.lint import lint_module

    now = to_us(wall_now())
    found: list[tuple[str, LintFinding]] = []
    for file in files:
        module = described(file, namespace, python).module  # and the jobs that were made for its verbs
        lines = text_lines(file)
        durations: dict[str, float] = {}
        if controllers:
            made, durations = measured(controllers, module, runs)
            module = replace(module, verbs=(*module.verbs, *made))
        found += [
            (file, finding._replace(line=finding.line or lines.get(finding.verb, 0)))
            for finding in lint_module(module, now, durations, herd)
            if finding.rule not in ignore
        ]
    if output == "json":
        print_json([{"file": file, **finding._asdict()} for file, finding in found])
    else:
        for file, finding in found:
            say(finding_text(file, finding), colour="yellow" if finding.level == WARNING else "cyan")
            say(f"    {finding.remedy}")
        if not found:
            say("nothing found", err=True)
    sys.exit(1 if any(finding.level == WARNING for _, finding in found) else 0)


def finding_text(file: str, finding: "LintFinding") -> str:
    """A line of its own, as editors read FILE:LINE at the beginning of one."""
    where = f"{file}:{finding.line}" if finding.line else file
    what = "job" if ":" in finding.verb else "verb"  # a job's name stands behind its verb's
    return f"{where}: {finding.level}: {what} {finding.verb}: {finding.message} [{finding.rule}]"


def text_lines(file: str) -> dict[str, int]:
    """Where the verbs of a text form stand; a module's own text says so itself."""
    path = Path(file)
    if path.suffix == ".py":
        return {}
    found: dict[str, int] = {}
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        verb = re.search(r"(?:^|[{\s])verb\s+([A-Za-z_][A-Za-z0-9_]*)\s*\(", line.partition("//")[0])
        if verb is not None:
            found.setdefault(verb[1], number)
    return found


def measured(controllers: tuple[str, ...], module: "Module", runs: int) -> "tuple[list[Verb], dict[str, float]]":
    """Jobs of the module made through the API, each as a verb by its key; and how long runs took, in milliseconds.

    The latter of every job that has run often enough, by its verb or its key: what 95 % of the latest stayed below.
    """

    async def question(client: "AsyncClient") -> "tuple[list[Verb], dict[str, list[float]]]":
        taken: dict[str, list[float]] = defaultdict(list)
        jobs = await client.jobs.list(module.namespace, module.name)
        made = [job for job in jobs if job.source == "api"]
        for job in jobs:
            name = job.key if job.source == "api" else job.verb
            for took in map(duration_ms, await client.executions.list(job.key, limit=runs)):
                if took is not None:
                    taken[name].append(took)
        return list(map(as_verb, made)), taken

    made, taken = ask(controllers, question)
    return made, {name: quantile(each, _QUANTILE) for name, each in taken.items() if len(each) >= _FEWEST_RUNS}


def as_verb(job: "Job") -> "Verb":
    """What a job made through the API would be, were it declared."""
    from cronring.schema.instant import format_instant
    from cronring.schema.module import Verb
    from cronring.schema.policy import read_policy
    from cronring.schema.schedule import is_interval

    anchor = format_instant(to_us(job.anchor)) if job.anchor and is_interval(job.schedule) else ""
    policy = read_policy(dict(job.policy))
    return Verb(job.key, schedule=job.schedule, policy=policy, anchor=anchor)


def quantile(values: list[float], share: float) -> float:
    """The smallest value that at least this share of them doesn't exceed."""
    return sorted(values)[math.ceil(len(values) * share) - 1]
