"""From the options of `cronring dev --speed` to a replay."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from cronring.cli.dev.replay_options import MAX
from cronring.cli.failures import Failure, suggestion
from cronring.cli.interrupts import run_loop
from cronring.cli.printing import say, say_source, screen

if TYPE_CHECKING:
    from cronring.cli.dev.replay import ReplayPlan, ReplayView
    from cronring.runner.modules import LoadedModule
    from cronring.virtual.engine import Engine

_REPLAY_ONLY: Final = {"start": "--start", "outage": "--outage", "duration": "--duration"}
_REAL_ONLY: Final = {"data": "--data", "controllers": "--controllers", "database_url": "--database-url",
                     "schema": "--schema"}  # fmt: skip


def check_options(context: click.Context, replays: bool) -> None:
    """Raises click.UsageError for an option that would be ignored."""
    given = {
        name for name in context.params if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    }
    wrong = [flag for name, flag in (_REAL_ONLY if replays else _REPLAY_ONLY).items() if name in given]
    if wrong and replays:
        raise click.UsageError(f"{wrong[0]} doesn't go with --speed, which replays in memory, without processes")
    if wrong:
        raise click.UsageError(f"{wrong[0]} needs --speed: only a replay in virtual time has it (--speed 3600x)")


def replay(
    files: tuple[Path, ...],
    for_s: float | None,
    namespace: str,
    python: str | None,
    plain: bool,
    options: dict[str, Any],
) -> None:
    """Play, and print the books."""
    import uvloop

    from cronring.cli.dev.replay import Replay

    if options["speed"] == MAX and for_s is None:
        raise click.UsageError("--speed max needs --for: it would come to the end of 2099 before you can stop it")
    plan = _plan(files, for_s, namespace, python, options)
    cut = _cut_by_timeouts(plan)
    for line in cut:
        say(line, err=True)
    output: str | None = options["output"] or ("text" if plain or not sys.stdout.isatty() else None)
    pace = "as fast as it goes" if plan.speed is None else f"{plan.speed:,.6g}x"

    def make_view(engine: "Engine") -> "ReplayView":
        return _view(engine, output, ", ".join(file.name for file in files), pace)

    played = Replay(plan, make_view)
    run_loop(played.run(), uvloop.new_event_loop)
    if output == "json":
        say_source(played.summary_json())
        return
    for line in [*played.summary(), *cut]:  # again, as the picture has gone over it
        say(line)


def _cut_by_timeouts(plan: "ReplayPlan") -> list[str]:
    """Hints about durations that no run will last, as the verb's timeout comes first."""
    from cronring.controller.core.settings import ClusterSettings
    from cronring.schema.duration import format_duration

    lines = []
    for verb in [verb for each in plan.modules for verb in each.module.verbs]:
        timeout_ms = verb.timeout_ms or ClusterSettings().timeout_ms
        lasts_ms = plan.durations_us.get(verb.name, 0) // 1_000
        if lasts_ms > timeout_ms:
            whose = "its timeout" if verb.timeout_ms else "the default timeout"
            lines.append(
                f"hint: --duration {verb.name}={format_duration(lasts_ms)} is longer than {whose}, "
                f"{format_duration(timeout_ms)}, at which its runs end as timed_out; write "
                f'timeout="{format_duration(2 * lasts_ms)}" at the verb to let them go on'
            )
    return lines


def _plan(
    files: tuple[Path, ...], for_s: float | None, namespace: str, python: str | None, options: dict[str, Any]
) -> "ReplayPlan":
    from cronring.cli.clock import wall_now
    from cronring.cli.dev.replay import ReplayPlan
    from cronring.cli.instants import resolved
    from cronring.virtual.instants import instant_us

    start = resolved(options["start"]) if options["start"] else wall_now().replace(microsecond=0)
    start_us = instant_us(start)
    modules = tuple(_load(file, namespace, python) for file in files)
    durations: dict[str, int] = dict(options["duration"])
    verbs = [verb.name for each in modules for verb in each.module.verbs]
    for verb in durations:
        if verb not in verbs:
            raise Failure(f"--duration {verb}=...: there is no verb {verb!r}.{suggestion(verb, verbs)}")
    for outage in options["outage"]:
        if outage.start_us < start_us:
            raise Failure(f"--outage {outage}: it begins before the replay, which starts {start:%Y-%m-%dT%H:%M:%SZ}")
    until_us = None if for_s is None else start_us + round(for_s * 1_000_000)
    speed = None if options["speed"] == MAX else options["speed"]
    return ReplayPlan(modules, start_us, until_us, speed, durations, tuple(options["outage"]))


def _load(file: Path, namespace: str, python: str | None) -> "LoadedModule":
    from cronring.runner.describe import DescribeFailed, read_program
    from cronring.runner.modules import InvalidFile, load_module

    try:
        return load_module(read_program(file, python or sys.executable, namespace))
    except DescribeFailed as error:
        raise Failure(str(error)) from error
    except InvalidFile as error:
        # Lines of their own, as editors read FILE:LINE at the beginning of one.
        raise Failure(str(error), prefix="") from error


def _view(engine: "Engine", output: str | None, title: str, pace: str) -> "ReplayView":
    if output is not None:
        from cronring.cli.dev.replay_lines import Lines

        return Lines(sys.stdout, output == "json")
    from cronring.cli.dev.replay_picture import Picture

    return Picture(engine, screen(), title, pace)
