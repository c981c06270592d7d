"""`cronring dev`: a whole cluster on this machine."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cronring.cli.dev.replay_options import replay_options
from cronring.cli.interrupts import run_loop
from cronring.cli.options import DATABASE_URL, DAY_S, Duration, Schema, option
from cronring.cli.output import print_json_line
from cronring.cli.printing import say_lines, screen

if TYPE_CHECKING:
    from cronring.cli.dev.development import DevView
    from cronring.cli.dev.state import DevState


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--for", "for_s", envvar="CRONRING_DEV_FOR", type=Duration(1, 3_660 * DAY_S),
              help="End by itself after so long (30s, 5m), with the books.")  # fmt: skip
@click.option("--data", metavar="DIR", help="Keep the database here.  [default: a temporary one, removed at the end]")
@click.option(
    "--controllers", type=click.IntRange(1, 16), default=3, show_default=True, help="How many controller processes."
)
@click.option("--namespace", default="default", show_default=True, help="Where the module's jobs live.")
@option("--python", metavar="PATH", help="The interpreter that runs the verbs.  [default: this one]")
@click.option("--database-url", type=DATABASE_URL, help="Use this PostgreSQL instead of the embedded one.")
@click.option("--schema", type=Schema(), default="cronring", show_default=True, help="The schema with the tables.")
@click.option("--plain", is_flag=True, help="Lines instead of the live picture (as without a terminal).")
@replay_options
def dev(
    files: tuple[Path, ...],
    *,
    for_s: float | None,
    data: str | None,
    controllers: int,
    namespace: str,
    python: str | None,
    database_url: str | None,
    schema: str,
    plain: bool,
    **replaying: Any,
) -> None:
    """Run FILES on a whole cluster on this machine: PostgreSQL, controllers, and a runner, shown live.

    Every part is a process of its own, so that you can break it: kill -9 a controller, and see the others take over. A
    controller that you kill stays dead, as healing is what there is to see. A runner that you kill is replaced by a new
    one. Ctrl-C ends everything within five seconds.

    \b
    Examples:
      cronring dev billing.py
      cronring dev billing.py reports.py --for 30s  ends with the books
      cronring dev billing.py --data ./devdata      keeps the database
      cronring dev billing.py | grep execution      a line for each happening
      cronring dev billing.py --speed 3600x --start 2026-03-28T00:00Z \\
        --for 3d --outage database@2026-03-29T01:00+2h

    With --for, the exit code is 0 only if all ticks are in the books, and the last line counts them, as:
    ticks due 87 | executed 81 | skipped 6 (overlap 6) | unaccounted: 0

    --controllers, --database-url and --schema are read from CRONRING_DEV_CONTROLLERS, CRONRING_DEV_DATABASE_URL and
    CRONRING_DEV_SCHEMA here, so that settings for a real cluster don't leak into this one.

    With --speed the cluster is a virtual one: the same engine in one process, on a clock that goes so many times as
    fast, or by leaps (--speed max). Your verbs still run in real child processes, and last as long as they really do,
    unless --duration says otherwise. At the end: what became of each job's ticks, and what changes of clocks did to
    them. --for counts virtual time then.
    """
    from cronring.cli.dev.replay_command import check_options, replay

    check_options(click.get_current_context(), replays=replaying["speed"] is not None)
    if replaying["speed"] is not None:
        replay(files, for_s, namespace, python, plain, replaying)
        return
    from cronring.cli.dev.cluster import StartPlan
    from cronring.cli.dev.database import require_embedded
    from cronring.cli.dev.development import Development, DevOptions
    from cronring.cli.dev.state import DevState
    from cronring.cli.modules import described

    for file in files:
        described(file, namespace, python)  # what is wrong in a module is said before anything starts
    if database_url is None:
        require_embedded()
    state = DevState()
    output = replaying["output"] or ("text" if plain else None)
    view = _view(state, output, ", ".join(file.name for file in files))
    plan = StartPlan(tuple(file.resolve() for file in files), controllers, python, namespace)
    development = Development(DevOptions(plan, for_s, data, database_url, schema), state, view)
    code = run_loop(development.run())
    if development.summary is not None and output == "json":
        print_json_line(development.summary.as_json())
    elif development.summary is not None:
        say_lines(development.summary.lines())
    sys.exit(code)


def _view(state: "DevState", output: str | None, title: str) -> "DevView":
    from cronring.cli.dev.panels import HEIGHT_MIN, WIDTH_MIN

    console = screen()
    small = console.width < WIDTH_MIN or console.height < HEIGHT_MIN
    if output or small or console.is_dumb_terminal or not sys.stdout.isatty():
        from cronring.cli.dev.plain import Plain

        return Plain(state, sys.stdout, as_json=output == "json")
    from cronring.cli.dev.display import Display

    return Display(state, console, title)
