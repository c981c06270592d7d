"""`python -m tests.proxies`: every proxy beside its bound, and what is called most."""

import sys
from collections.abc import Callable

import click

from tests.proxies import books, burst, cores
from tests.proxies.bounds import BOOKS, BURST, CORES, IDLE, MEASURED_ON, MEMBERSHIP, MEMORY, Bound, complaints

GROUPS: dict[str, tuple[tuple[Bound, ...], Callable[[], dict[str, float]]]] = {
    "cores": (CORES, cores.calls),
    "memory": (MEMORY, cores.memory),
    "idle": (IDLE, cores.idle),
    "membership": (MEMBERSHIP, cores.membership),
    "books": (BOOKS, books.measure),
    "burst": (BURST, burst.measure),
}
CALLED_MOST = 40


def lines(group: str, bounds: tuple[Bound, ...], measured: dict[str, float]) -> list[str]:
    """A table: measured now, when the bound was set, the bound, and how much of it is used."""
    head = f"{group:<32}{'now':>10}{MEASURED_ON:>12}{'at most':>10}{'used':>7}"
    rows = []
    for bound in bounds:
        value = measured[bound.name]
        used = f"{value / bound.at_most:.0%}" if bound.at_most else "-"
        mark = "  TOO MUCH: " + bound.look if value > bound.at_most else ""
        rows.append(f"  {bound.name:<30}{value:>10.4g}{bound.measured:>12g}{bound.at_most:>10g}{used:>7}{mark}")
    return [head, *rows, ""]


def show_calls() -> None:
    """For each execution, in one burst of real processes."""
    found = burst.play()
    for name, calls in (("controllers", found.controllers), ("runner", found.runner), ("child", found.child)):
        click.echo(f"{name}: {calls.total() / burst.JOBS:.1f} calls for each execution")
        for function, number in calls.most_common(CALLED_MOST):
            click.echo(f"  {number / burst.JOBS:8.2f}  {function}")


@click.command()
@click.option("--only", multiple=True, type=click.Choice(list(GROUPS)), help="May be given again.")
@click.option("--calls", is_flag=True, help="What controllers, runner and child call most for an execution, instead.")
def main(only: tuple[str, ...], calls: bool) -> None:
    """What an execution costs in things that don't depend on the machine's speed, beside the bounds of `make test`.

    Statements, commits, messages, bytes, rows, blocks, WAL, calls of functions, memory. Exit code 1 if one is above.

    \b
    Examples:
      python -m tests.proxies
      python -m tests.proxies --only cores --only books
      python -m tests.proxies --calls
    """
    if calls:
        show_calls()
        return
    too_much = []
    for group in only or GROUPS:
        bounds, measure = GROUPS[group]
        measured = measure()
        click.echo("\n".join(lines(group, bounds, measured)))
        too_much += complaints(bounds, measured)
    click.echo("\n".join(too_much))
    sys.exit(bool(too_much))


if __name__ == "__main__":
    main()
