"""Which statements a PostgreSQL server ran, by the names of `sql/`, from its own log.

What a database of the session is told by `LOGGED` it writes for each statement: how long it took, and its text. The
embedded server has no pg_stat_statements; at the rates of an idle cluster its log costs nothing that could be seen.
"""

import re
from collections import defaultdict
from typing import Final, NamedTuple

from cronring import sql

# ALTER DATABASE ... SET: of sessions that begin afterwards.
LOGGED: Final = {"log_min_duration_statement": "0", "log_parameter_max_length": "0"}
# A line as log_line_prefix has it by default; a text of several lines goes on behind tabs.
_ENTRY: Final = re.compile(r"LOG:  duration: ([\d.]+) ms  (?:statement|execute [^:]*): (.*(?:\n\t.*)*)", re.MULTILINE)
OTHER: Final = "other"
_WORDS: Final = {"BEGIN", "COMMIT", "ROLLBACK"}


class Spent(NamedTuple):
    """One statement, together."""

    calls: int
    total_ms: float
    worst_ms: float


def spent(log: str) -> dict[str, Spent]:
    """By name, the most frequent first; BEGIN and COMMIT under their own."""
    names = {text: name for name, text in sql.statements().items()}
    found: defaultdict[str, list[float]] = defaultdict(list)
    for took_ms, text in _ENTRY.findall(log):
        plain = text.replace("\n\t", "\n").strip()
        word = plain.partition(";")[0].partition(" ")[0]
        found[names.get(plain, word if word in _WORDS else OTHER)].append(float(took_ms))
    by_calls = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    return {name: Spent(len(all_ms), round(sum(all_ms), 3), max(all_ms)) for name, all_ms in by_calls}
