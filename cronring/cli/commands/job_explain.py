"""`cronring jobs explain`: what a job's schedule comes to, and what its verb takes."""

from typing import TYPE_CHECKING

import click

from cronring.cli.completion import job_key
from cronring.cli.conversation import ask, job_keys, or_nearest
from cronring.cli.options import controllers_option, output_option
from cronring.cli.output import jsonable, print_fields, print_json, short_instant
from cronring.cli.printing import say, say_lines

if TYPE_CHECKING:
    from cronring.client import AsyncClient
    from cronring.client.schedules import DescribedVerb, Explanation


@click.command("explain")
@click.argument("key", shell_complete=job_key)
@click.option("-n", "--count", type=click.IntRange(1, 100), default=10, show_default=True, help="How many ticks.")
@output_option
@controllers_option
def explain_job(key: str, count: int, output: str, controllers: tuple[str, ...]) -> None:
    """Say what the job KEY comes to: its next ticks with their jitter, changes of clocks, and what its verb takes.

    As its controllers reckon it, with its policy. A pause doesn't count. For a schedule alone: cronring explain.

    \b
    Examples:
      cronring jobs explain billing.close_month
      cronring jobs explain billing.close_month -n 3 -o json | jq .ticks
    """

    async def question(client: "AsyncClient") -> "tuple[Explanation, DescribedVerb]":
        said = client.schedules.of_job(key, count=count)
        found = await or_nearest(said, "job", key, lambda: job_keys(client))
        return found, await client.schedules.verb(key)

    found, verb = ask(controllers, question)
    if output == "json":
        print_json(jsonable(found) | {"verb": jsonable(verb)})
        return
    print_fields(
        [
            ("schedule", found.schedule), ("runs", found.words), ("timezone", found.timezone),
            *([("verb", f"{verb.verb}: {verb.doc}")] if verb.doc else []), ("payload", _payload(verb)),
        ]
    )  # fmt: skip
    say_lines(["", "next ticks:"])
    for tick in found.ticks:
        late = f", to begin at {short_instant(tick.run_at)}" if tick.run_at != tick.tick else ""
        say(f"  {short_instant(tick.tick)}   {tick.local}{late}{f'   {tick.note}' if tick.note else ''}")
    if not found.ticks:
        say("  none")
    for change in found.clock_changes:
        say(f"{change.day}: {change.happens}")
    for remark in found.remarks:
        say(f"{remark.level}: {remark.message} {remark.remedy}".rstrip())


def _payload(verb: "DescribedVerb") -> str:
    if verb.request == "Unit":
        return "none"
    fields = verb.types.get(verb.request, {})
    shown = f" ({', '.join(f'{name}: {kind}' for name, kind in fields.items())})" if fields else ""
    return f"{verb.request}{shown}{', which may be left out' if verb.request_optional else ''}"
