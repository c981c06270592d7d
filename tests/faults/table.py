"""docs/reliability.md from the figures that the rows printed."""

import json
from pathlib import Path
from typing import Any, Final

from tests.faults.row import Row, all_rows
from tests.faults.trial import RESULTS

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "reliability.md"
BEGIN: Final = "<!-- the table: python -m tests.faults --table -->"
END: Final = "<!-- end of the table -->"
HEAD: Final = (
    "| `make fault ROW=` | fault | must hold | injected | ticks (excused) | late p99 / max | "
    "missed, early, twice, beside, lost | more | seconds, when |"
)


def table() -> str:
    """One line for each row; one without a result says so."""
    lines = [HEAD, "|---" * HEAD.count(" | ") + "|---|"]
    lines += [_line(row, figures(row)) for row in all_rows().values()]
    return "\n".join(lines)


def figures(row: Row) -> dict[str, Any] | None:
    path = RESULTS / f"{row.name}.json"
    if not path.exists():
        return None
    read: dict[str, Any] = json.loads(path.read_text())
    return read


def _line(row: Row, found: dict[str, Any] | None) -> str:
    head = f"| {row.name} | {row.fault} | {row.promise} |"
    if found is None:
        return f"{head} not run yet | | | | | |"
    injected = ", ".join(f"{count} {name}" for name, count in found["faults"].items())
    wrong = ", ".join(str(found[kind]) for kind in ("missed", "early", "duplicates", "overlapping", "results_lost"))
    more = "; ".join(f"{name} {words}" for name, words in found["measured"].items())
    verdict = "" if found["holds"] else "**does not hold** "
    ticks = f"{found['ticks']:,} ({found['ticks_of_the_fault']:,})"
    return (
        f"{head} {injected} | {ticks} | {found['lateness_p99_s']:.3f} / {found['lateness_max_s']:.3f} s | "
        f"{verdict}{wrong} | {more} | {found['seconds']:g}, {found['date']} |"
    )


def write() -> None:
    """Replace what stands between the marks. Raises ValueError where they are missing."""
    text = DOCUMENT.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    DOCUMENT.write_text(f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}")
