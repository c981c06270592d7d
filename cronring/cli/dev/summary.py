"""The books of one `cronring dev`, at its end."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from cronring.cli.output import jsonable, milliseconds
from cronring.client.model import Audit


class Summary(NamedTuple):
    """How it ended."""

    books: Audit
    worst_lateness_ms: float

    def lines(self) -> list[str]:
        return [outcomes_line(self.books, self.worst_lateness_ms), last_line(self.books)]

    def as_json(self) -> dict[str, Any]:
        return {"event": "summary", **jsonable(self)}


def last_line(books: Audit) -> str:
    """`ticks due 87 | executed 81 | skipped 6 (overlap 6) | unaccounted: 0`."""
    skipped = sum(books.skipped.values())
    reasons = f" ({_counts(books.skipped)})" if skipped else ""
    pending = f"pending {books.pending} | " if books.pending else ""
    return (
        f"ticks due {books.ticks} | executed {books.executed} | skipped {skipped}{reasons} | "
        f"{pending}unaccounted: {books.unaccounted}"
    )


def settled(books: Audit) -> bool:
    """Every tick of the span has ended in the books."""
    return not_booked(books) == 0 and books.running == 0


def not_booked(books: Audit) -> int:
    """Ticks that have not ended in the books; one that is over leaves none."""
    return books.unaccounted + books.pending


def outcomes_line(books: Audit, worst_lateness_ms: float) -> str:
    return f"outcomes: {_counts(books.outcomes) or 'none'} | worst lateness {milliseconds(worst_lateness_ms)}"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()) if count)
