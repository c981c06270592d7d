"""`python -m bench`: measure, print a table, and keep it as JSON and markdown in bench/results/."""

import json
from pathlib import Path
from typing import Any

import click

from bench.burst import burst

RESULTS = Path(__file__).parent / "results"


def table(result: dict[str, Any]) -> str:
    """Markdown, with the ratio to nothing else than this run's own rounds: these machines are noisy."""
    columns = ["per_second", "drained_ms", "first_ms", "p50_ms", "p99_ms", "max_ms"]
    words = ", ".join(f"{value} {name}" for name, value in result["shape"].items())
    head = " | ".join(f"{name} {value}" for name, value in result["machine"].items())
    lines = [f"### {result['name']}: {words}", "", head, "", "| round | " + " | ".join(columns) + " |"]
    lines.append("|---" * (len(columns) + 1) + "|")
    rows = [("median", result["median"]), *((str(n), row) for n, row in enumerate(result["rounds"], 1))]
    lines += [f"| {name} | " + " | ".join(str(row[column]) for column in columns) + " |" for name, row in rows]
    return "\n".join(lines) + "\n"


@click.command()
@click.option("--jobs", default=2000, show_default=True, help="Jobs due in the same second.")
@click.option("--controllers", default=3, show_default=True)
@click.option("--runners", default=1, show_default=True)
@click.option("--rounds", default=5, show_default=True, help="Ticks measured, after one that warms up.")
def main(jobs: int, controllers: int, runners: int, rounds: int) -> None:
    """Burst: N no-op jobs due in one second, to the last committed end."""
    click.echo(f"burst of {jobs} jobs, {rounds} rounds of 15 s …", err=True)
    result = burst(jobs, controllers, runners, rounds)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "burst.json").write_text(json.dumps(result, indent=1) + "\n")
    (RESULTS / "burst.md").write_text(table(result))
    click.echo(table(result))


if __name__ == "__main__":
    main()
