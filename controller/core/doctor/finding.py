"""The result of one check of the doctor."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

_NAMED_AT_MOST: Final = 5


class Verdict(StrEnum):
    """Ordered from good to bad."""

    OK = "ok"
    WARNING = "warning"
    UNCHECKED = "unchecked"  # could not be checked
    PROBLEM = "problem"


_RANK: Final = {verdict: rank for rank, verdict in enumerate(Verdict)}


class Finding(NamedTuple):
    """One check: what was seen, and what to do about it ("" for nothing)."""

    check: str
    verdict: Verdict
    seen: str
    advice: str = ""


class Trouble(NamedTuple):
    """One thing that is wrong."""

    verdict: Verdict
    seen: str
    advice: str


def warning(seen: str, advice: str) -> Trouble:
    return Trouble(Verdict.WARNING, seen, advice)


def problem(seen: str, advice: str) -> Trouble:
    return Trouble(Verdict.PROBLEM, seen, advice)


def found(check: str, troubles: Sequence[Trouble], well: str) -> Finding:
    """One finding for all troubles: the worst verdict, and the texts, the worst first. No troubles: `well`."""
    if not troubles:
        return Finding(check, Verdict.OK, well)
    ordered = sorted(troubles, key=lambda trouble: -_RANK[trouble.verdict])
    advice = dict.fromkeys(trouble.advice for trouble in ordered[:_NAMED_AT_MOST])
    seen = listed([trouble.seen for trouble in ordered], "; ")
    return Finding(check, ordered[0].verdict, seen, "\n".join(advice))


def unchecked(check: str, reason: str) -> Finding:
    return Finding(check, Verdict.UNCHECKED, reason, "See why it could not be checked, and ask again.")


def guarded(check: str, rule: Callable[[], Finding]) -> Finding:
    """The rule's finding. If the rule raises, the finding says so (UNCHECKED), and the other rules still run."""
    try:
        return rule()
    except Exception as error:  # of any kind: one broken rule must not hide what the others find
        return unchecked(check, f"the check itself failed: {type(error).__name__}: {error}")


def worst(findings: Sequence[Finding]) -> Verdict:
    """The worst verdict of all; OK if there are no findings."""
    return max((finding.verdict for finding in findings), key=_RANK.__getitem__, default=Verdict.OK)


def listed(items: Sequence[str], separator: str = ", ") -> str:
    """The first few, and how many more there are."""
    more = len(items) - _NAMED_AT_MOST
    return separator.join(items[:_NAMED_AT_MOST]) + (f"{separator}and {more} more" if more > 0 else "")
