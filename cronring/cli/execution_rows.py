"""Executions as commands show them: a row of a listing, and one alone."""

from typing import TYPE_CHECKING, Any

from cronring.cli.conversation import Links
from cronring.cli.output import jsonable, milliseconds, print_fields, print_json, short_instant
from cronring.cli.printing import say_block, say_lines
from cronring.schema.pages import execution_page

if TYPE_CHECKING:
    from cronring.client.model import Execution


_PAYLOAD_OF = {"run": "given to this run", "job": "its job's, at that time", "": "not known"}


def listed(execution: "Execution") -> dict[str, Any]:
    """A row of the listing, which carries none of what may be long."""
    row: dict[str, Any] = jsonable(execution)
    del row["output"], row["payload"], row["payload_of"], row["stack"], row["metrics"]
    return row


def duration_ms(execution: "Execution") -> float | None:
    """From the verb's start to its end; None while it has no end."""
    if execution.started_at is None or execution.ended_at is None:
        return None
    return (execution.ended_at - execution.started_at).total_seconds() * 1000


def print_execution(row: "Execution", links: Links, output: str) -> None:
    """One execution with its output, as JSON or for people."""
    url, trace_url = links.to(execution_page(row.id)), links.to_trace(row.trace_id)
    if output == "json":
        print_json(jsonable(row) | {"url": url, "trace_url": trace_url})
        return
    print_fields([*_fields(row), ("trace", trace_url or row.trace_id), *([("console", url)] if url else [])])
    if row.outputs_hidden:
        say_lines(["", "what it printed is hidden from you: the role outputs-viewer shows it"])
    if row.stack:
        say_lines(["", "stack:"])
        say_block(row.stack)
    if row.output:
        say_lines(["", "output:"])
        say_block(row.output)


def _memory(row: "Execution") -> str:
    if row.memory_peak_bytes is None:
        return "-"
    shared = " (of a process that it shared)" if row.memory_shared else ""
    return f"{row.memory_peak_bytes / 2**20:.1f} MiB{shared}"


def _fields(row: "Execution") -> list[tuple[str, str]]:
    fields = [
        ("execution", str(row.id)),
        ("number", str(row.number)),
        ("job", row.job),
        ("tick", short_instant(row.tick)),
        ("run at", short_instant(row.run_at)),
        ("started", short_instant(row.started_at)),
        ("ended", short_instant(row.ended_at)),
        ("outcome", row.outcome or "running"),
        ("lateness", milliseconds(row.lateness_ms)),
        ("took", milliseconds(duration_ms(row))),
        ("CPU time", milliseconds(row.cpu_ms)),
        ("peak memory", _memory(row)),
        ("attempt", str(row.attempt)),
        ("trigger", row.trigger + (" (beside its job's own runs)" if row.beside else "")),
        ("missed before", f"{row.missed} ticks" if row.missed else "-"),
        ("previous tick", short_instant(row.previous_tick)),
        ("last success", short_instant(row.previous_success)),
        ("controller", row.controller),
        ("runner", row.runner),
        ("deployment", row.deployment),
    ]
    fields += [(name, str(value)) for name, value in row.metrics.items()]
    if row.payload:
        fields.append(("payload", f"{row.payload}  ({_PAYLOAD_OF.get(row.payload_of, row.payload_of)})"))
    if row.retry_at is not None:
        fields.append(("retry at", f"{short_instant(row.retry_at)}, unless a tick comes before"))
    if row.cancel_requested_at is not None:
        why = f": {row.cancel_note}" if row.cancel_note else ""
        fields.append(("cancellation", f"{short_instant(row.cancel_requested_at)} by {row.cancel_requested_by}{why}"))
    if row.error_type or row.error_message:
        fields.append(("error", f"{row.error_type}: {row.error_message}".strip(": ")))
    return fields
