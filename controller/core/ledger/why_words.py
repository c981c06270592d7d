"""How instants, lengths of time and runs are told."""

from datetime import timedelta, timezone
from typing import Final

from cronring.controller.core.ledger.why_facts import Attempt
from cronring.schema.duration import measured
from cronring.schema.execution import OF_A_TICK
from cronring.schema.instant import from_us
from cronring.schema.zone import load_zone

_SECOND: Final = 1_000_000
_MESSAGE_SHOWN: Final = 300


def instant(at: int, zone: str = "") -> str:
    """`2026-11-21 09:00:00Z`, with thousandths where there are any, and what the clocks of a zone show."""
    moment = from_us(at)
    text = f"{moment:%Y-%m-%d %H:%M:%S}"
    if at % _SECOND:
        text += f".{at % _SECOND // 1_000:03}"
    if not zone:
        return f"{text}Z"
    offset = timezone(timedelta(seconds=load_zone(zone).offset_at(at // _SECOND)))
    local = moment.astimezone(offset)
    return f"{text}Z ({local:%Y-%m-%d %H:%M:%S} {zone})"


def length(microseconds: int) -> str:
    """Of a span that has ended or goes on: never below zero, though two clocks have told its ends."""
    return measured(max(microseconds, 0) / 1_000)


def ticks(count: int) -> str:
    return "1 tick" if count == 1 else f"{count:,} ticks"


def told(run: Attempt, now: int) -> str:
    """What became of one run, in one sentence."""
    text = f"{_name(run)} {_start(run)}"
    if run.outcome is None:
        since = run.claimed_at if run.started_at is None else run.started_at
        return f"{text}, and has been running for {length(now - since)}."
    assert run.ended_at is not None, "it has an outcome"
    took = length(run.ended_at - (run.claimed_at if run.started_at is None else run.started_at))
    return f"{text}, took {took} and {_ending(run)}."


def decided(run: Attempt) -> str:
    where = f"it ran on runner {run.runner_id}" if run.runner_id else "its target is a queue, which needs no runner"
    return f"Controller {run.controller_id} claimed it at {instant(run.claimed_at)}; {where}."


def _name(run: Attempt) -> str:
    match run.trigger:
        case "retry":
            return f"Attempt {run.attempt}, execution {run.execution_id},"
        case "backfill":
            return f"A backfill made up for it: execution {run.execution_id}"
        case "manual":
            return f"Execution {run.execution_id}, triggered by hand,"
        case "catch_up":
            return f"It was caught up: execution {run.execution_id}"
        case _:
            return f"Execution {run.execution_id}"


def _start(run: Attempt) -> str:
    if run.started_at is None:
        return f"was claimed {length(run.claimed_at - run.run_at)} after its run_at"
    late = run.started_at - run.run_at
    if run.trigger == "after" or (run.trigger in OF_A_TICK and run.run_at != run.tick):
        return f"started {length(late)} after its run_at, {instant(run.run_at)}"
    if run.trigger in {"retry", "backfill", "manual"}:
        return f"started at {instant(run.started_at)}"
    return f"started {length(late)} after it was due"


def _ending(run: Attempt) -> str:
    message = run.error_message.strip().splitlines()
    detail = message[-1][:_MESSAGE_SHOWN] if message else ""
    named = ": ".join(part for part in (run.error_type, detail) if part)
    match run.outcome:
        case "completed":
            return "completed"
        case "failed":
            return f"failed with {named}" if named else "failed"
        case "timed_out":
            return "ran out of its time" + (f" ({detail})" if detail else "")
        case "cancelled":
            # The first line says who wanted it, and the last one that it had to be killed for that.
            who = message[0][:_MESSAGE_SHOWN] if len(message) > 1 else ""
            return "was cancelled" + (f" ({'; '.join(filter(None, (who, detail)))})" if detail else "")
        case "out_of_memory" | "out_of_cpu":
            limit = "memory_limit" if run.outcome == "out_of_memory" else "cpu_limit"
            return f"went over its {limit}" + (f" ({detail})" if detail else "")
        case _:
            who = "runner" if run.runner_id else "consumer"
            return f"was lost: its {who} was heard of no more" + (f" ({detail})" if detail else "")
