"""What lint says."""

from typing import Final, NamedTuple

RULES: Final = {
    "never-again": "its last tick is past, or there was none",
    "follows-nobody": "it runs after a verb of its module that is none, or has no job",
    "skips-months": "a day of the month that many months don't have",
    "uneven-step": "`*/n` where n doesn't divide the field, so that the last gap is another",
    "either-day": "both day fields restrict, so either suffices",
    "every-minute": "`*` in the minute or second field where one time was probably meant",
    "clock-change": "a time of the day that a change of the clocks skips or repeats",
    "window": "ticks that never fall into the window, or may never do",
    "timeout": "a run may take longer than until the next tick, which is then skipped",
    "retries": "retries that the next tick comes before, or nobody asks for",
    "herd": "many verbs of the module start at one instant",
    "slow": "runs have taken longer than until the next tick (needs --controllers)",
}

WARNING: Final = "warning"
NOTE: Final = "note"


class Fault(NamedTuple):
    """Of one job: which rule, what happens, what to write instead."""

    rule: str
    message: str
    remedy: str
    level: str = WARNING


class LintFinding(NamedTuple):
    """`line` is 0 where it isn't known."""

    rule: str
    level: str
    verb: str
    line: int
    message: str
    remedy: str
