"""How long history is kept, and what a round of looking after it has done."""

from typing import Final, NamedTuple

DAY_MS: Final = 86_400_000


class Retention(NamedTuple):
    """How long executions stay, or how many of each job: whichever keeps more. `ahead_ms`: partitions made ahead."""

    history_ms: int
    runs: int
    audit_log_ms: int
    ahead_ms: int = 3 * DAY_MS


class Maintained(NamedTuple):
    """What one round has done. `ours` False: another controller does it. `waiting`: something was busy, and is left."""

    ours: bool
    partitions_made: int = 0
    jobs_closed: int = 0
    waiting: bool = False
