"""What a simulated verb does: it takes its time, and ends somehow."""

from typing import NamedTuple

from cronring.schema.execution import Outcome


class Course(NamedTuple):
    """`next_in_ms`: the verb moves its job's next run; 0: it does not."""

    duration_ns: int
    outcome: Outcome
    error_type: str = ""
    next_in_ms: int = 0
