"""A frame as text that fits its terminal: each part has as many rows as there is room for."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cronring.cli.colours import style_of
from cronring.cli.glance import countdown
from cronring.cli.printing import visible
from cronring.cli.top.frame import Frame

CONTROLLERS_SHOWN: Final = 5
RUNNERS_SHOWN: Final = 4
HINT: Final = "q quits"


def picture(frame: Frame, width: int, height: int, problem: str = "") -> RenderableType:
    """At most `height` lines of `width` characters. `problem`: why it is no newer."""
    frame, problem = visible(frame), visible(problem.partition("\n")[0])
    members, runners = frame.cluster.members, [each for each in frame.cluster.runners if each.alive]
    members_shown = min(len(members), CONTROLLERS_SHOWN)
    runners_shown = min(len(runners), RUNNERS_SHOWN)
    # Two lines above, and a heading for each of the five parts.
    rows = max(3, height - 2 - 5 - members_shown - runners_shown - 1)
    due = max(1, min(len(frame.due), rows // 3))
    troubles = max(1, min(len(frame.troubles), rows // 3))
    running = max(1, rows - due - troubles)
    lines = [
        _heading(frame, problem),
        _counts(frame),
        _part("controllers", len(members), _controllers(frame, members_shown), width, (22, 9, 8, 9, 0)),
        _part("runners", len(runners), _runners(frame, runners_shown), width, (22, 9, 8, 9, 0)),
        _part("running", frame.figures.running, _running(frame, running), width, (0, 11, 9, 8, 22)),
        _part("due soon", None, _due(frame, due), width, (0, 22)),
        _part("failed lately", None, _troubles(frame, troubles), width, (26, 10, 9, 0)),
    ]
    return Group(*lines, Text(HINT, style="dim"))


def _heading(frame: Frame, problem: str) -> Text:
    shown = f"{frame.now:%Y-%m-%d %H:%M:%S} UTC" if frame.now is not None else "no PostgreSQL"
    line = Text.assemble(("cronring top", "bold"), "  ", (shown, "bold"), f"  by {frame.cluster.answered_by}")
    if problem:
        line.append(f"  {problem}", style="red")
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def _counts(frame: Frame) -> Text:
    jobs = ", ".join(f"{count} {status}" for status, count in frame.figures.jobs.items() if count) or "none"
    rates = frame.rates
    pace = "" if rates is None else (
        f"{rates.started:.1f} started/s, {rates.ended:.1f} ended/s, {rates.failed:.1f} failed/s   "
    )  # fmt: skip
    return Text(f"{pace}jobs: {jobs}", no_wrap=True, overflow="ellipsis")


def _part(
    name: str, count: int | None, rows: Sequence[Sequence[str]], width: int, widths: Sequence[int]
) -> RenderableType:
    """A heading and its rows; one column, whose width is 0, takes what the others leave."""
    heading = Text(f"{name} ({count})" if count is not None else name, style="bold underline")
    table = Table.grid(padding=(0, 1), pad_edge=False)
    left = max(10, width - sum(widths) - len(widths) + 1)
    for each in widths:
        table.add_column(width=each or left, no_wrap=True, overflow="ellipsis")
    for row in rows:
        table.add_row(*(Text(cell, style=style_of(cell)) for cell in row))
    return Group(heading, table) if rows else heading


def _controllers(frame: Frame, shown: int) -> list[tuple[str, ...]]:
    return [
        (each.id, each.status, f"{each.share:.0%}", _ago(each.started_at, frame.now), each.grpc_address)
        for each in frame.cluster.members[:shown]
    ]


def _runners(frame: Frame, shown: int) -> list[tuple[str, ...]]:
    alive = [each for each in frame.cluster.runners if each.alive]
    return [
        (each.id, "alive", f"{len(each.deployments)} mod.", _ago(each.started_at, frame.now), each.hostname)
        for each in alive[:shown]
    ]


def _running(frame: Frame, shown: int) -> list[tuple[str, ...]]:
    return [
        (each.job, f"#{each.id}", each.trigger, _ago(each.claimed_at, frame.now), each.runner)
        for each in frame.running[:shown]
    ]


def _due(frame: Frame, shown: int) -> list[tuple[str, ...]]:
    return [(each.job, _until(each.run_at, frame.now)) for each in frame.due[:shown]]


def _troubles(frame: Frame, shown: int) -> list[tuple[str, ...]]:
    return [
        (
            each.job,
            each.outcome or "",
            f"{_ago(each.ended_at, frame.now)} ago",
            f"{each.error_type}: {each.error_message}",
        )
        for each in frame.troubles[:shown]
    ]


def _ago(moment: datetime | None, now: datetime | None) -> str:
    if moment is None or now is None:
        return "-"
    return countdown(max(0.01, (now - moment).total_seconds()))


def _until(moment: datetime | None, now: datetime | None) -> str:
    return "-" if moment is None or now is None else countdown((moment - now).total_seconds())
