"""Effects as text, one line each, with times in seconds since the story began."""

from typing import Any

from cronring.controller.core.model import EndRequest
from cronring.controller.core.node import effects
from cronring.schema.execution import Skipped

# What goes on all the time, and is shown only on demand (`show renewals`, `show packets`).
BACKGROUND = {
    "renewals": effects.RenewLease,
    "packets": effects.SendPacket,
    "searches": effects.FindPeers,
    "beats": effects.AckBeat,
}


def tell(effect: effects.Effect, epoch_us: int) -> str:  # noqa: C901, PLR0911  one branch for each kind
    """One line for an effect; instants are counted from `epoch_us`."""

    def at(instant: int | None) -> str:
        return "never" if instant is None else f"{(instant - epoch_us) / 1e6:g}"

    match effect:
        case effects.Claim(_, requests, _):
            return "claim " + ", ".join(
                f"job {each.job_id} tick {at(each.run_tick)} on {each.runner_id}{_skipped(each.skipped, at)}"
                for each in requests
            )
        case effects.End(_, requests):
            return "end " + ", ".join(_end(each, at) for each in requests)
        case effects.SkipTicks(_, requests):
            return "skip " + ", ".join(
                f"job {each.job_id}:{_skipped(each.skipped, at)}; next {at(each.next_tick)}" for each in requests
            )
        case effects.Dispatch(runner_id, _, executions):
            runs = ", ".join(f"{each.execution_id} (job {each.job.job_id} tick {at(each.tick)})" for each in executions)
            return f"dispatch to {runner_id}: {runs}"
        case (
            effects.FetchWindow(_, slots, _) | effects.FetchOverdue(_, slots, _) | effects.FetchActivations(_, slots, _)
        ):
            return f"{_words(effect)} of {len(slots)} slots"
        case effects.LogLine(level, event, values):
            return f"log {level} {event}" + "".join(f" {name}={value}" for name, value in values.items())
        case effects.RenewLease(_, draining, runner_ids, cancelling):
            known = f" cancelling {_plain(cancelling)}" if cancelling else ""
            return f"renew lease {draining} {_plain(runner_ids)}{known}"
        case effects.CancelRuns(runner_id, execution_ids, reason, grace_ms):
            grace = f" within {grace_ms} ms" if grace_ms else ""
            return f"cancel runs {runner_id} {_plain(execution_ids)} {reason}{grace}"
        case effects.Adopt(_, controller_ids, runner_ids):
            only = f" on {_plain(runner_ids)}" if runner_ids else ""
            return f"adopt {_plain(controller_ids)}{only}"
        case effects.AckBeat(runner_id, sequence, renewed, database_ok, peers):
            peer_ids = ",".join(peer_id for peer_id, _ in peers)
            return f"ack beat {sequence} of {runner_id}: renewed={renewed} database_ok={database_ok} peers={peer_ids}"
        case _:
            fields = [_plain(value) for name, value in zip(effect._fields, effect, strict=True) if name != "request_id"]
            return " ".join([_words(effect), *fields]).rstrip()


def _end(request: EndRequest, at: Any) -> str:
    report = request.report
    error = f" ({report.error_type}: {report.error_message})" if report.error_type else ""
    passed = _skipped(request.skipped, at)
    return f"{report.execution_id} {report.outcome}{error}, next tick {at(request.next_tick)}{passed}"


def _skipped(ranges: tuple[Skipped, ...], at: Any) -> str:
    return "".join(
        f" [{each.reason}: {each.ticks} ticks, {at(each.first_tick)} to {at(each.last_tick)}]" for each in ranges
    )


def _words(effect: Any) -> str:
    name = type(effect).__name__
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).strip()


def _plain(value: Any) -> str:
    return ",".join(str(each) for each in value) if isinstance(value, tuple) else str(value)
