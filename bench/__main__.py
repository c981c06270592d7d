"""`python -m bench`: every figure that README quotes, in one run; kept as JSON and markdown in bench/results/."""

import time

import click

from bench import burst, herd, idle, limits, membership, ring, steady, stored, summary
from bench.results import RESULTS, Part, keep, previous
from bench.rivals import part as rivals

PARTS: tuple[Part, ...] = (
    limits.PART,
    burst.PART,
    steady.PART,
    herd.PART,
    idle.PART,
    stored.PART,
    membership.PART,
    ring.PART,
    rivals.PART,
)


@click.command()
@click.option("--only", multiple=True, type=click.Choice([part.name for part in PARTS]), help="May be given again.")
def main(only: tuple[str, ...]) -> None:
    """Measure all parts, one after the other, and print their tables with the ratios to the run before.

    Nothing else should run on the machine meanwhile. At the end, each goal stands beside what was measured.
    """
    parts = [part for part in PARTS if not only or part.name in only]
    begun, left = time.monotonic(), sum(part.about_s for part in parts)
    not_kept = []
    for number, part in enumerate(parts, 1):
        passed = time.monotonic() - begun
        click.echo(f"[{number}/{len(parts)}] {part.name}: {passed:.0f} s so far, about {left} s to go …", err=True)
        result = part.measure()
        if not keep(result, part.table(result)):
            not_kept.append(part.name)
        left -= part.about_s
    if not_kept:  # a summary would pass figures of an earlier run for those of this one
        raise click.ClickException(f"not kept: {', '.join(not_kept)}; there is no summary of this run")
    minutes = (time.monotonic() - begun) / 60
    whole = summary.table(
        {part.name: previous(part.name) for part in PARTS},
        f"{', '.join(only)} anew in {minutes:.1f} minutes" if only else f"in {minutes:.1f} minutes",
    )
    click.echo(whole)
    (RESULTS / "summary.md").write_text(whole)


if __name__ == "__main__":
    main()
