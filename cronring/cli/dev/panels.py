"""The parts of the live picture, each made from the state alone."""

from datetime import datetime
from typing import Final, assert_never

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cronring.cli.colours import style_of
from cronring.cli.commands.executions import duration_ms
from cronring.cli.dev.happenings import (
    Happening,
    Heartbeat,
    MemberChanged,
    ProcessEnded,
    ProcessStarted,
    Progress,
    RingHealed,
    RunEnded,
    RunStarted,
    ServedBy,
    ViewLost,
)
from cronring.cli.dev.processes import Child
from cronring.cli.dev.state import State
from cronring.cli.dev.words import bar, countdown, duration, lateness, time_of_day
from cronring.client.model import Execution, Job

BAR_CELLS: Final = 20
EVENTS_SHOWN: Final = 4
# Title, headings, blank lines, totals and hints: what stands besides rows.
FIXED_LINES: Final = 15
LATE_MS: Final = 100.0


def picture(state: State, title: str, width: int, height: int) -> RenderableType:
    """Everything, fitted to the terminal: first the list of executions gets shorter, then that of jobs."""
    rows = max(6, height - FIXED_LINES - len(state.controllers) - len(state.runners[-1:]) - EVENTS_SHOWN)
    jobs_shown = max(3, min(len(state.jobs), rows - 4))
    executions_shown = max(3, min(14, rows - jobs_shown))
    return Group(
        heading(state, title),
        Text(),
        controllers(state),
        Text(),
        jobs(state, jobs_shown),
        Text(),
        executions(state, executions_shown),
        Text(),
        *events(state, width),
        totals(state),
        *hints(state),
    )


def heading(state: State, title: str) -> Text:
    line = Text.assemble(("cronring dev", "bold"), f"  {title}  ", (f"{state.now():%H:%M:%S} UTC", "bold"))
    if not state.answering:
        line.append("   no controller answers", "bold red")
    elif state.cluster is not None:
        line.append(f"   told by {state.name_of(state.cluster.answered_by)}", "dim")
    return line


def controllers(state: State) -> Table:
    table = _table("controller", "pid", "status", "share of the ring", "", "lease", "grpc", "http")
    for child in state.controllers:
        table.add_row(*_controller(state, child))
    for child in state.runners[-1:]:
        status = "alive" if child.alive else child.end
        table.add_row(child.name, str(child.pid), Text(status, style_of(status)), "", "", "", "", "")
    return table


def _controller(state: State, child: Child) -> tuple[str | Text, ...]:
    member = state.member_of(child)
    if not child.alive:
        return (Text(child.name, "red"), str(child.pid), Text(child.end, "red"), "", "", "", "", "")
    if member is None:
        return (child.name, str(child.pid), Text("starting", "yellow"), "", "", "", child.grpc_address, "")
    left = (member.lease_expires_at - state.now()).total_seconds() if member.lease_expires_at else 0.0
    return (
        child.name,
        str(child.pid),
        Text(member.status, style_of(member.status)),
        Text(bar(member.share, BAR_CELLS), "cyan"),
        f"{member.share:.1%}",
        Text(f"{left:.1f} s", "default" if left > 1 else "red"),
        child.grpc_address,
        child.http_address,
    )


def jobs(state: State, shown: int) -> Table:
    table = _table("job", "schedule", "status", "last", "lateness", "next tick in")
    for job in state.jobs[:shown]:
        table.add_row(*_job(job, state.now()))
    hidden = len(state.jobs) - shown
    if hidden > 0:
        table.add_row(Text(f"and {hidden:,} more: cronring jobs list", "dim"), "", "", "", "", "")
    return table


def _job(job: Job, now: datetime) -> tuple[str | Text, ...]:
    outcome = job.last_outcome or "-"
    late = Text(lateness(job.last_lateness_ms), "red" if (job.last_lateness_ms or 0) > LATE_MS else "default")
    next_tick = countdown((job.next_execution - now).total_seconds()) if job.next_execution else "-"
    return (
        job.key,
        job.schedule_words or job.schedule,
        Text(job.status, style_of(job.status)),
        Text(outcome, style_of(outcome)),
        late,
        "" if job.status == "running" else next_tick,
    )


def executions(state: State, shown: int) -> Table:
    table = _table("time", "job", "outcome", "lateness", "took", "controller", "runner")
    newest = sorted(state.executions.values(), key=lambda each: each.id)[-shown:]
    for execution in newest:
        table.add_row(*_execution(state, execution))
    return table


def _execution(state: State, execution: Execution) -> tuple[str | Text, ...]:
    outcome = execution.outcome or "running"
    return (
        time_of_day(execution.started_at or execution.claimed_at),
        execution.job,
        Text(outcome, style_of(outcome)),
        lateness(execution.lateness_ms),
        duration(duration_ms(execution)),
        state.name_of(execution.controller),
        state.name_of(execution.runner),
    )


def events(state: State, width: int) -> list[Text]:
    """What happened to processes and membership, the latest last."""
    told = [(moment, text) for moment, each in state.happenings if (text := _event(each)) is not None]
    lines = []
    for moment, text in told[-EVENTS_SHOWN:]:
        line = Text.assemble((f"{moment:%H:%M:%S}  ", "dim"), text)
        line.truncate(width, overflow="ellipsis")
        lines.append(line)
    return [*lines, Text()] if lines else []


def _event(happening: Happening) -> Text | None:
    match happening:
        case ProcessEnded(name, pid, how, next_step):
            return Text(f"{name} (pid {pid}): {how}; {next_step}", "red")
        case ProcessStarted(name, pid, _, _):
            return Text(f"{name} started, pid {pid}")
        case MemberChanged(name, before, after):
            return Text(f"{name}: {before or 'new'} -> {after}", style_of(after))
        case RingHealed(after_s, owners):
            return Text(f"ring healed after {after_s:.1f} s: {owners} controllers own all slots", "green")
        case ServedBy(name):
            return Text(f"this view now comes from {name}", "dim")
        case ViewLost(reason):
            return Text(reason, "red")
        case Progress() | RunStarted() | RunEnded() | Heartbeat():
            return None
        case _:
            assert_never(happening)


def totals(state: State) -> Text:
    if state.totals is None:
        return Text("counting ...", "dim")
    books = state.totals
    skipped = ", ".join(f"{reason} {ticks}" for reason, ticks in sorted(books.skipped.items()))
    return Text.assemble(
        ("ticks due ", "dim"), str(books.ticks_due), ("  executed ", "dim"), str(books.executed),
        ("  running ", "dim"), str(books.running), ("  skipped ", "dim"), skipped or "0",
        ("  not booked yet ", "dim"), str(books.unaccounted + books.pending),
        ("  worst lateness ", "dim"), lateness(state.worst_lateness_ms),
    )  # fmt: skip


def hints(state: State) -> list[Text]:
    """What to try next."""
    living = [child for child in state.controllers if child.alive]
    addresses = ",".join(child.grpc_address for child in living)
    lines = [Text.assemble(("ask   ", "dim"), f"cronring jobs list --controllers {addresses}")]
    if len(living) > 1:
        asked = state.cluster.answered_by if state.cluster is not None else ""
        # The one that feeds this view is the more telling one to lose.
        victim = next((child for child in living if state.name_of(asked) == child.name), living[0])
        lines.append(Text.assemble(("try   ", "dim"), (f"kill -9 {victim.pid}", "bold"), f"   ({victim.name})"))
    lines.append(Text.assemble(("stop  ", "dim"), "Ctrl-C"))
    return lines


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for title in headings:
        right = title in {"pid", "lease", "lateness", "took", "next tick in"}
        table.add_column(title, justify="right" if right else "left", no_wrap=True, overflow="ellipsis")
    return table
