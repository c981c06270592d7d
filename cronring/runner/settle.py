"""What becomes of the runs in a child that has died."""

import signal
from typing import Final, NamedTuple

from cronring.child.board import COMPLETED, RAISED, STARTED, STATE, UNSENT, WAITING
from cronring.runner.children import Child, monotonic_us
from cronring.runner.held import NOT_KNOWN, Held
from cronring.runner.quota import Excess, cpu_excess
from cronring.schema.execution import Outcome, Report

_UNREAD: Final = "\n[… its last output may be missing: its child process stood still or died before that was read …]\n"


class Settlement(NamedTuple):
    """`again`: runs that had not begun, for another child. `culprit`: whose code brought it down, if that is known.

    `suspects`: else, those that may have, by a thread or a callback of theirs.
    """

    results: list[Report]
    again: list[Held]
    culprit: Held | None
    suspects: list[Held]


def settle(child: Child, code: int, offset_us: int) -> Settlement:
    """Decide every run that the child held. The board says which had begun, and which had even ended."""
    now_us = monotonic_us() + offset_us
    states = {held: child.board[STATE + held.slot] for held in child.held.values()}
    fenced = child.fenced and not child.kill_reason
    if fenced:
        child.kill_reason = "it ended itself, as this runner stood still without contact"
    innocent = fenced or child.stood_still
    culprit = None if innocent else child.culprit or child.current() or _only_one(states)
    results: list[Report] = []
    again: list[Held] = []
    for held, state in states.items():
        child.release(held.run.execution_id)
        started_us = held.sent_us + offset_us
        if fenced and held.stop is None and not held.run.finish:
            held.fence()
        if state == COMPLETED:
            results.append(ended_well(child, held, offset_us, now_us))
        elif held.stop is not None:
            results.append(held.stopped(started_us, now_us, _end_of(child, code)))
        elif (excess := _excess(code, held)) is not None:
            meter = child.meter
            usage = NOT_KNOWN if meter is None else (meter.cpu_us, meter.peak_bytes or None, False)
            results.append(held.exceeded(excess, started_us, now_us, usage))
        elif state == WAITING:
            again.append(held)
        else:
            error_type, message = _failure(child, code, held, state, culprit)
            results.append(held.result(Outcome.FAILED, started_us, now_us, error_type, message))
    nobody = culprit is not None or bool(child.kill_reason)
    suspects = [] if nobody else [held for held, state in states.items() if state == STARTED]
    return Settlement(results, again, culprit, suspects)


def ended_well(child: Child, held: Held, offset_us: int, now_us: int) -> Report:
    """Of a run whose result has not come, while the board says that it completed."""
    if child.board[UNSENT]:
        held.write(_UNREAD)
    return held.result(Outcome.COMPLETED, held.sent_us + offset_us, now_us)


def _excess(code: int, held: Held) -> Excess | None:
    """It was killed for a limit: by this runner, or by the kernel, at its ceiling of CPU time."""
    if held.excess is None and held.run.cpu_limit_us and code == -signal.SIGXCPU:
        return cpu_excess(held.run)
    return held.excess


def _only_one(states: dict[Held, int]) -> Held | None:
    begun = [held for held, state in states.items() if state != WAITING]
    return begun[0] if len(begun) == 1 else None


def _failure(child: Child, code: int, held: Held, state: int, culprit: Held | None) -> tuple[str, str]:
    error_type = "ChildKilled" if child.kill_reason else "ChildCrashed"
    end = _end_of(child, code)
    if state == RAISED:
        return error_type, f"it raised an exception, whose text was lost when its child process ended: {end}"
    if culprit is held:
        words = child.last_words()
        return error_type, f"its child process ended: {end}" + (f"\nlast output:\n{words}" if words else "")
    blamed = f"{culprit.run.job} (execution {culprit.run.execution_id})" if culprit else "unknown"
    return error_type, f"the child process that it shared ended: {end}; brought down by: {blamed}"


def _end_of(child: Child, code: int) -> str:
    if child.kill_reason:
        return f"killed: {child.kill_reason}"
    if code < 0:
        try:
            return f"signal {-code} ({signal.Signals(-code).name})"
        except ValueError:
            return f"signal {-code}"
    return f"exit code {code}"
