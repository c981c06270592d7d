"""`python -m bench`: every figure that README quotes, in one run; kept as JSON and markdown in bench/results/."""

import time

import click

from bench import burst, idle, limits, membership, ring
from bench.results import Part, keep

PARTS: tuple[Part, ...] = (limits.PART, burst.PART, idle.PART, membership.PART, ring.PART)


@click.command()
@click.option("--only", multiple=True, type=click.Choice([part.name for part in PARTS]), help="May be given again.")
def main(only: tuple[str, ...]) -> None:
    """Measure all parts, one after the other, and print their tables with the ratios to the run before."""
    parts = [part for part in PARTS if not only or part.name in only]
    begun, left = time.monotonic(), sum(part.about_s for part in parts)
    for number, part in enumerate(parts, 1):
        passed = time.monotonic() - begun
        click.echo(f"[{number}/{len(parts)}] {part.name}: {passed:.0f} s so far, about {left} s to go …", err=True)
        result = part.measure()
        keep(result, part.table(result))
        left -= part.about_s
    click.echo(f"{len(parts)} parts in {time.monotonic() - begun:.0f} s", err=True)


if __name__ == "__main__":
    main()
