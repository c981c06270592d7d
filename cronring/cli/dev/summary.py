"""The books of a session, at its end."""

from collections.abc import Mapping

from cronring.client.model import Totals


def last_line(totals: Totals) -> str:
    """`ticks due 87 | executed 81 | skipped 6 (overlap 6) | unaccounted: 0`."""
    skipped = sum(totals.skipped.values())
    reasons = f" ({_counts(totals.skipped)})" if skipped else ""
    pending = f"pending {totals.pending} | " if totals.pending else ""
    return (
        f"ticks due {totals.ticks_due} | executed {totals.executed} | skipped {skipped}{reasons} | "
        f"{pending}unaccounted: {totals.unaccounted}"
    )


def settled(totals: Totals) -> bool:
    """Every tick of the span has ended in the books."""
    return totals.unaccounted == totals.pending == totals.running == 0


def outcomes_line(totals: Totals, worst_lateness_ms: float) -> str:
    return f"outcomes: {_counts(totals.outcomes) or 'none'} | worst lateness {worst_lateness_ms:.1f} ms"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()) if count)
