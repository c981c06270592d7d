"""`python -m bench.rivals`: cronring beside others, in turns. Prints a table, and keeps it in bench/results/."""

import signal
import sys

import click

from bench.results import keep
from bench.rivals.contenders import QUEUES, RECURRING
from bench.rivals.part import SHORT, rivals
from bench.rivals.run import Form
from bench.rivals.table import OURS, table


@click.command()
@click.option("--short", is_flag=True, help="As in `make bench`: cycles of a minute, slow rivals with fewer jobs.")
@click.option("--jobs", default=Form.jobs, show_default=True, help="Recurring jobs due in the same second.")
@click.option("--one-shots", default=Form.one_shots, show_default=True, help="Jobs in a queue; 0: no queues.")
@click.option("--processes", default=Form.processes, show_default=True, help="Of each contender.")
@click.option("--rounds", default=None, type=int, help="Measured, after one that warms up.  [default: 3; short: 2]")
@click.option("--only", multiple=True, help="A rival's name; may be given again. cronring always takes part.")
def main(short: bool, jobs: int, one_shots: int, processes: int, rounds: int | None, only: tuple[str, ...]) -> None:
    """A burst of recurring jobs, and queues of one-shots, beside other schedulers on the same PostgreSQL.

    The long form takes about half an hour, and is kept as rivals_long; the short one six minutes, as rivals.
    """
    known = {spec.name for spec in RECURRING + QUEUES}
    if unknown := set(only) - known - {OURS}:
        raise click.BadParameter(f"{', '.join(unknown)}: there are {', '.join(sorted(known))}", param_hint="--only")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started ends with us
    count = rounds or (SHORT.rounds if short else Form.rounds)
    result = rivals(Form(jobs, one_shots, processes, count, short), only)
    keep(result, table(result))


if __name__ == "__main__":
    main()
