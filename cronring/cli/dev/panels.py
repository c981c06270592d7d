"""The parts of the live picture, each made from the state alone."""

from datetime import datetime
from typing import Final, assert_never

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cronring.cli.colours import style_of
from cronring.cli.dev.happenings import (
    Happening,
    Heartbeat,
    MemberChanged,
    OutputLine,
    ProcessEnded,
    ProcessStarted,
    RingHealed,
    RunEnded,
    RunStarted,
    ServedBy,
    StartProgress,
    ViewLost,
)
from cronring.cli.dev.processes import DevProcess
from cronring.cli.dev.state import DevState
from cronring.cli.dev.summary import not_booked
from cronring.cli.execution_rows import duration_ms
from cronring.cli.glance import bar, countdown, time_of_day
from cronring.cli.output import milliseconds
from cronring.cli.printing import visible
from cronring.client.model import Execution, Job
from cronring.schema.duration import measured

WIDTH_MIN: Final = 80  # below these, lines are easier to read than a picture
HEIGHT_MIN: Final = 20
WIDE: Final = 110  # from here on there is room for what is nice to have
BAR_CELLS: Final = 20
# Above, between and below the parts whose rows are shared out.
FIXED_LINES: Final = 8
LATE_MS: Final = 100.0


def picture(state: DevState, title: str, width: int, height: int) -> RenderableType:
    """Everything, fitted to the terminal: pids, addresses, how to break it and how to stop it are never cut."""
    space = [Text()] if height >= 32 else []
    rows = height - FIXED_LINES - len(state.controllers) - len(state.runners[-1:]) - 4 * len(space)
    happened = max(2, min(4, rows // 4))
    said = max(2, min(8, rows // 4))
    jobs_shown = max(2, min(len(state.jobs) or 1, (rows - happened - said) // 2))
    runs = max(2, rows - happened - said - jobs_shown)
    return Group(
        heading(state, title), *space, controllers(state, width), *space, jobs(state, jobs_shown, width), *space,
        executions(state, runs, width), *space, *output(state, said, width), *events(state, happened, width),
        counts(state, width), *hints(state, width),
    )  # fmt: skip


def heading(state: DevState, title: str) -> Text:
    line = Text.assemble(("cronring dev", "bold"), f"  {visible(title)}  ", (f"{state.now():%H:%M:%S} UTC", "bold"))
    if not state.answering:
        line.append("   no controller answers", "bold red")
    elif state.cluster is not None:
        line.append(f"   told by {visible(state.name_of(state.cluster.answered_by))}", "dim")
    return _cut(line)


def controllers(state: DevState, width: int) -> Table:
    wide = width >= WIDE
    bar_column = ("share of the ring",) if wide else ()
    table = _table("controller", "pid", "status", *bar_column, "share", "lease", "grpc, http")
    for child in state.controllers:
        table.add_row(*_controller(state, child, wide))
    for child in state.runners[-1:]:
        status = "alive" if child.alive else child.end
        table.add_row(child.name, str(child.pid), Text(status, style_of(status)))
    return table


def _controller(state: DevState, child: DevProcess, wide: bool) -> tuple[str | Text, ...]:
    member = state.member_of(child)
    listens = f"{child.grpc_address} :{child.http_address.rpartition(':')[2]}"
    nothing = ("",) * (3 if wide else 2)
    if not child.alive:
        return (Text(child.name, "red"), str(child.pid), Text(child.end, "red"), *nothing, "")
    if member is None:
        return (child.name, str(child.pid), Text("starting", "yellow"), *nothing, listens)
    left = (member.lease_expires_at - state.now()).total_seconds() if member.lease_expires_at else 0.0
    return (
        child.name, str(child.pid), Text(member.status, style_of(member.status)),
        *((Text(bar(member.share, BAR_CELLS), "cyan"),) if wide else ()), f"{member.share:.1%}",
        Text(measured(left * 1_000), "default" if left > 1 else "red"), listens,
    )  # fmt: skip


def jobs(state: DevState, shown: int, width: int) -> Table:
    """With a row for how many there is no room for."""
    hidden = len(state.jobs) - shown
    if hidden > 0:
        shown, hidden = shown - 1, hidden + 1
    words = ("schedule",) if width >= WIDE else ()
    table = _table("job", *words, "status", "last", "lateness", "next tick in")
    for job in visible(state.jobs[:shown]):
        table.add_row(*_job(job, state.now(), bool(words)))
    if hidden > 0:
        table.add_row(_cut(Text(f"and {hidden:,} more: cronring jobs list", "dim")))
    return table


def _job(job: Job, now: datetime, words: bool) -> tuple[str | Text, ...]:
    outcome = job.last_outcome or "-"
    late = Text(
        milliseconds(job.last_lateness_ms, signed=True), "red" if (job.last_lateness_ms or 0) > LATE_MS else "default"
    )
    next_tick = countdown((job.next_execution - now).total_seconds()) if job.next_execution else "-"
    return (
        _cut(Text(job.key)), *((_cut(Text(job.schedule_words or job.schedule)),) if words else ()),
        Text(job.status, style_of(job.status)), Text(outcome, style_of(outcome)), late,
        "" if job.status == "running" else next_tick,
    )  # fmt: skip


def executions(state: DevState, shown: int, width: int) -> Table:
    wide = width >= WIDE
    table = _table("time", "job", "outcome", "lateness", "took", "controller", *(("runner",) if wide else ()))
    newest = sorted(state.executions.values(), key=lambda each: each.id)[-shown:]
    for execution in visible(newest):
        table.add_row(*_execution(state, execution)[: None if wide else -1])
    return table


def _execution(state: DevState, execution: Execution) -> tuple[str | Text, ...]:
    outcome = execution.outcome or "running"
    late = milliseconds(execution.lateness_ms, signed=True)
    return (
        time_of_day(execution.started_at or execution.claimed_at),
        _cut(Text(execution.job)),
        Text(outcome, style_of(outcome)),
        Text(late, "red" if (execution.lateness_ms or 0) > LATE_MS else "default"),
        milliseconds(duration_ms(execution)),
        _cut(Text(state.name_of(execution.controller))),
        _cut(Text(state.name_of(execution.runner))),
    )


def output(state: DevState, shown: int, width: int) -> list[Text]:
    """The latest lines that verbs have printed, and why they failed."""
    latest = visible(list(state.printed))[-shown:]
    return [
        _fitted(Text.assemble((f"{each.job}: ", "dim"), (each.text, "red" if each.is_error else "default")), width)
        for each in latest
    ]


def events(state: DevState, shown: int, width: int) -> list[Text]:
    """What happened to processes and membership, the latest last."""
    told = [(moment, text) for moment, each in state.happenings if (text := _event(visible(each))) is not None]
    return [_fitted(Text.assemble((f"{moment:%H:%M:%S}  ", "dim"), text), width) for moment, text in told[-shown:]]


def _event(happening: Happening) -> Text | None:
    match happening:
        case ProcessEnded(name, pid, how, next_step):
            return Text(f"{name} (pid {pid}): {how}; {next_step}", "red")
        case ProcessStarted(name, pid, _, _):
            return Text(f"{name} started, pid {pid}")
        case MemberChanged(name, before, after):
            return Text(f"{name}: {before or 'new'} -> {after}", style_of(after))
        case RingHealed(after_s, owners):
            return Text(f"ring healed after {measured(after_s * 1_000)}: {owners} controllers own all slots", "green")
        case ServedBy(name):
            return Text(f"this view now comes from {name}", "dim")
        case ViewLost(reason):
            return Text(reason, "red")
        case StartProgress() | OutputLine() | RunStarted() | RunEnded() | Heartbeat():
            return None
        case _:
            assert_never(happening)


def counts(state: DevState, width: int) -> Text:
    if state.books is None:
        return Text("counting ...", "dim")
    books = state.books
    skipped = ", ".join(f"{reason} {ticks}" for reason, ticks in sorted(books.skipped.items()))
    line = Text.assemble(
        ("due ", "dim"), str(books.ticks), ("  executed ", "dim"), str(books.executed),
        ("  running ", "dim"), str(books.running), ("  not booked yet ", "dim"), str(not_booked(books)),
        ("  latest ", "dim"), milliseconds(state.worst_lateness_ms, signed=True), ("  skipped ", "dim"), skipped or "0",
    )  # fmt: skip
    return _fitted(line, width)


def hints(state: DevState, width: int) -> list[Text]:
    """What to open in a browser, what to ask on another terminal, what to break, how to stop."""
    living = [child for child in state.controllers if child.alive]
    # One of them will do: whichever answers knows all.
    address = "" if state.found_by_commands or not living else f" --controllers {living[0].grpc_address}"
    lines = [
        _fitted(Text.assemble(("see   ", "dim"), state.console_link or f"cronring console{address}"), width),
        _fitted(Text.assemble(("ask   ", "dim"), f"cronring jobs list{address}"), width),
    ]
    last = Text.assemble(("stop  ", "dim"), "Ctrl-C")
    if len(living) > 1:
        asked = state.cluster.answered_by if state.cluster is not None else ""
        # The one that feeds this view is the more telling one to lose.
        victim = next((child for child in living if state.name_of(asked) == child.name), living[0])
        last.append("   try  ", "dim").append(f"kill -9 {victim.pid}", "bold").append(f"  ({victim.name})")
    return [*lines, last]


def _cut(text: Text) -> Text:
    """What gives way where there is no room."""
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _fitted(text: Text, width: int) -> Text:
    text.truncate(width, overflow="ellipsis")
    return text


def _table(*headings: str) -> Table:
    """Columns of jobs and of names give way; numbers, outcomes and addresses don't."""
    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for title in headings:
        right = title in {"pid", "share", "lease", "lateness", "took", "next tick in"}
        gives_way = title in {"job", "schedule", "runner"}
        table.add_column(title, justify="right" if right else "left", no_wrap=not gives_way, overflow="ellipsis")
    return table
