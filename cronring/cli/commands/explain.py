"""`cronring explain`: what a schedule comes to, in plain English."""

from typing import TYPE_CHECKING

import click

from cronring.cli.commands.next import parse_zone, tick_json, tick_lines
from cronring.cli.instants import instant_option, resolved
from cronring.cli.options import output_option
from cronring.cli.output import print_fields, print_json
from cronring.cli.printing import say, say_lines
from cronring.cli.schedules import parse_given, zone_options
from cronring.schema.duration import format_duration
from cronring.schema.instant import from_us, to_us

if TYPE_CHECKING:
    from cronring.schema.explain import Explanation, PerDay
    from cronring.schema.policy_model import Policy

TICKS = 10
KINDS = {
    "fixed-time": "fixed times of the day: with changed clocks, a skipped one {gap}, a repeated one {overlap}",
    "interval-like": "a rhythm, as minute or hour has `*` or `/`: with changed clocks, it goes on as they show{rhythm}",
    "interval": "an interval, counted from its anchor (here, from the start): changed clocks don't matter",
    "once": "one tick",
    "manual": "no tick of its own",
}
GAPS = {"run_after": "runs after", "skip": "does not run"}
OVERLAPS = {"first": "once", "second": "once, the second time", "both": "both times"}
RHYTHMS = {"first": ", but not twice", "second": ", but of repeated ticks only the second"}


@click.command()
@click.argument("schedule")
@instant_option("--from", "start", envvar="CRONRING_EXPLAIN_FROM", zone="--timezone's", default="now",
                show_default=True, help="As of this instant")  # fmt: skip
@zone_options
@output_option
def explain(
    schedule: str, start: str, timezone: str | None, dst_gap: str | None, dst_overlap: str | None, output: str
) -> None:
    """Say what a SCHEDULE comes to: in words, its next ten ticks, how many a day, and what changes of the clocks do.

    A SCHEDULE is a cron pattern, `every 30m`, or `at 2027-03-01T08:00:00Z`. Needs no controller and no database.

    \b
    Examples:
      cronring explain "*/15 9-17 * * 1-5"
      cronring explain "30 2 * * *" --timezone Europe/Berlin
      cronring explain "30 2 * * *" --timezone Europe/Berlin --dst-gap skip
      cronring explain "0 0 13 * 5" -o json | jq .words
    """
    from cronring.schema.explain import explain as explained

    moment = resolved(start, parse_zone(timezone))
    given = parse_given(schedule, moment, timezone, dst_gap, dst_overlap)
    found = explained(given.schedule, given.policy, to_us(moment), TICKS)
    if output == "json":
        print_json(as_json(found))
        return
    print_fields(
        [
            ("schedule", found.schedule),
            ("runs", found.words),
            ("kind", kind_text(found.kind, given.policy)),
            ("timezone", found.timezone + (f"   (tzdata {found.zone_data})" if found.timezone != "UTC" else "")),
            ("ticks a day", per_day_text(found.per_day)),
            *starts_text(found.kind, found.auto_jitter_ms),
        ]
    )
    say_lines(["", "next ticks:"])
    for line in tick_lines(found.ticks, local=found.timezone != "UTC") or ["none"]:
        say(f"  {line}")
    if found.clock_changes:
        say_lines(["", "changes of the clocks in the coming year:"])
        for change in found.clock_changes:
            say(f"  {change.happens}")


def kind_text(kind: str, policy: "Policy") -> str:
    """Of UTC nothing is said about changes of the clocks: it has none."""
    words = KINDS[kind].format(
        gap=GAPS[policy.dst_gap or "run_after"],
        overlap=OVERLAPS[policy.dst_overlap or "first"],
        rhythm=RHYTHMS.get(policy.dst_overlap, ""),
    )
    return words.partition(": ")[0] if policy.timezone in {"", "UTC"} else words


def starts_text(kind: str, auto_jitter_ms: int) -> list[tuple[str, str]]:
    """Nothing of what has no ticks."""
    if kind == "manual":
        return []
    auto = f"up to {format_duration(auto_jitter_ms)} later" if auto_jitter_ms else "the same"
    return [("starts", f'on its ticks (with jitter="auto": {auto})')]


def per_day_text(per_day: "PerDay") -> str:
    if per_day.days == 0 or per_day.most == 0:
        return f"none in the next {per_day.days} days"
    if per_day.least == per_day.most:
        return f"{per_day.most:,} on each of the next {per_day.days} days"
    average = f"{per_day.average:,.1f}" if per_day.average >= 1 else f"{per_day.average:.3f}"
    return f"{per_day.least:,} to {per_day.most:,}, {average} on average of the next {per_day.days} days"


def as_json(found: "Explanation") -> dict[str, object]:
    return {
        "schedule": found.schedule,
        "words": found.words,
        "timezone": found.timezone,
        "zone_data": found.zone_data,
        "kind": found.kind,
        "ticks": [tick_json(tick) for tick in found.ticks],
        "per_day": found.per_day._asdict(),
        "auto_jitter_ms": found.auto_jitter_ms,
        "clock_changes": [
            {
                "at": from_us(change.instant),
                "moved_ms": change.moved_ms,
                "times": change.times,
                "happens": change.happens,
            }
            for change in found.clock_changes
        ],
    }
