"""`python -m bench`: measure, print a table, and keep it as JSON and markdown in bench/results/."""

from typing import Any

import click

from bench.burst import burst
from bench.results import head, keep, rows


def table(result: dict[str, Any]) -> str:
    """Markdown, with the ratio to nothing else than this run's own rounds: these machines are noisy."""
    columns = ["per_second", "drained_ms", "first_ms", "p50_ms", "p99_ms", "max_ms"]
    every = [("median", result["median"]), *((str(n), row) for n, row in enumerate(result["rounds"], 1))]
    cells = [[name, *(row[column] for column in columns)] for name, row in every]
    return "\n".join([*head(result), *rows(["round", *columns], cells)]) + "\n"


@click.command()
@click.option("--jobs", default=2000, show_default=True, help="Jobs due in the same second.")
@click.option("--controllers", default=3, show_default=True)
@click.option("--runners", default=1, show_default=True)
@click.option("--rounds", default=5, show_default=True, help="Ticks measured, after one that warms up.")
def main(jobs: int, controllers: int, runners: int, rounds: int) -> None:
    """Burst: N no-op jobs due in one second, to the last committed end."""
    click.echo(f"burst of {jobs} jobs, {rounds} rounds of 15 s …", err=True)
    result = burst(jobs, controllers, runners, rounds)
    keep(result, table(result))


if __name__ == "__main__":
    main()
