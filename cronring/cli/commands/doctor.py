"""`cronring doctor`: what is wrong with the cluster, and what to do about it."""

from collections import defaultdict
from importlib import metadata
from typing import TYPE_CHECKING, Final

import click

from cronring.cli.credentials import trust_options
from cronring.cli.failures import EXIT_FAILED, EXIT_UNREACHABLE
from cronring.cli.interrupts import run_loop
from cronring.cli.options import (
    Addresses,
    database_option,
    option,
    output_option,
    schema_option,
)
from cronring.cli.output import Column, print_json, print_rows
from cronring.cli.printing import say_lines
from cronring.client.environment import DEFAULT_CONTROLLER, known_controllers

if TYPE_CHECKING:
    from cronring.cli.doctor.gather import Gathered
    from cronring.controller.core.doctor.finding import Finding

_SEEN_WIDTH: Final = 110


@click.command()
@option("--controllers", type=Addresses(), default=(),
        help="gRPC addresses of controllers. One is enough, if it answers: it names the others, and all are asked.  "
        f"[default: those of the database; else of your `cronring dev`, else {DEFAULT_CONTROLLER}]")  # fmt: skip
@trust_options
@database_option
@schema_option
@output_option
def doctor(controllers: tuple[str, ...], database_url: str | None, schema: str, output: str) -> None:
    """Check the whole cluster, and say what to do. It only reads.

    Every controller is asked about itself and about the others: whether all agree on the ring, who can't reach whom,
    leases, clocks, releases, settings, queues, runners. The database is checked as well: version, settings, schema,
    indexes, partitions, sessions that are in the way, leases, deployments without a runner, what is overdue, limits,
    webhooks. With --database-url that works when no controller answers, too.

    Verdicts: ok; warning; unchecked, which means that it could not be checked; problem.

    Exit codes: 0 nothing worse than warnings; 1 a problem, or something that could not be checked; 2 wrong usage. It is
    3 if neither a controller nor the database can be reached.

    \b
    Examples:
      cronring doctor --controllers 10.0.0.1:7400
      cronring doctor -o json \\
        --database-url postgresql://cronring@db.internal/cronring
    """
    from cronring.cli.doctor.gather import gather
    from cronring.cli.doctor.members import check_members
    from cronring.controller.core.doctor.finding import Verdict, worst

    gathered = run_loop(gather(controllers, database_url, schema, known_controllers()))
    members = check_members(gathered.reports, gathered.silent, metadata.version("cronring"))
    findings = [*members, *gathered.database]
    verdict = worst(findings)
    if output == "json":
        print_json({"verdict": verdict.value, "findings": findings_as_json(findings)})
    else:
        _print(findings)
    if _nobody_there(gathered):
        raise click.exceptions.Exit(EXIT_UNREACHABLE)
    if verdict in {Verdict.PROBLEM, Verdict.UNCHECKED}:
        raise click.exceptions.Exit(EXIT_FAILED)


def _nobody_there(gathered: "Gathered") -> bool:
    answered = gathered.reports or any(each.answered for each in gathered.silent)
    return not answered and not gathered.database_reached


def findings_as_json(findings: "list[Finding]") -> list[dict[str, str]]:
    return [
        {"check": each.check, "verdict": each.verdict.value, "seen": each.seen, "advice": each.advice}
        for each in findings
    ]


def _print(findings: "list[Finding]") -> None:
    """A row for each check, and below what to do about those that are not well, the worst first."""
    from cronring.controller.core.doctor.finding import Verdict

    columns: list[Column[Finding]] = [
        Column("check", lambda row: row.check),
        Column("verdict", lambda row: row.verdict.value),
        Column("seen", lambda row: _cut(row.seen)),
    ]
    print_rows(columns, findings, "nothing was checked")
    for verdict in (Verdict.PROBLEM, Verdict.UNCHECKED, Verdict.WARNING):
        alike: dict[tuple[str, str], list[str]] = defaultdict(list)
        for finding in findings:
            if finding.verdict is verdict:
                alike[finding.seen, finding.advice].append(finding.check)
        for (seen, advice), checks in alike.items():
            say_lines(["", f"{verdict.value}: {', '.join(checks)}"])
            say_lines(f"  {part}" for part in seen.split("; "))
            say_lines(f"  do: {line}" for line in advice.splitlines())
    counts = ", ".join(f"{count} {verdict.value}" for verdict in reversed(Verdict)
                       if (count := sum(each.verdict is verdict for each in findings)))  # fmt: skip
    say_lines(["", counts])


def _cut(text: str) -> str:
    """The whole of it is told below the table."""
    return text if len(text) <= _SEEN_WIDTH else text[: _SEEN_WIDTH - 4] + " ..."
