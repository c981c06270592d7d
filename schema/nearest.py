"""`Did you mean`: what comes nearest to a word that nobody knows, for little work whatever the word is."""

from collections.abc import Iterable
from difflib import SequenceMatcher
from heapq import nlargest
from typing import Final

WORD_MAX: Final = 80  # characters; who writes more has not mistyped a name
READ_MAX: Final = 60_000  # characters of all candidates together, and as many as ten for each: milliseconds
_COMPARED: Final = 3  # in full, of those that share most letters and pairs of letters with it


def nearest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The nearest of `known`; None if all are less alike than `cutoff`, where 1 is equal."""
    if not word or len(word) > WORD_MAX:
        return None
    of_word, read = _pieces(word), 0
    likely: list[tuple[float, str]] = []
    for candidate in known:
        length = len(candidate)
        read += 10 + length
        if read > READ_MAX:
            break
        if 2 * min(length, len(word)) >= cutoff * (length + len(word)):
            of_candidate = _pieces(candidate)
            shared = len(of_word & of_candidate)
            likely.append((shared / (len(of_word) + len(of_candidate) - shared), candidate))
    matcher = SequenceMatcher(None, "", word, autojunk=False)
    alike = []
    for _, candidate in nlargest(_COMPARED, likely):
        matcher.set_seq1(candidate)
        if (ratio := matcher.ratio()) >= cutoff:
            alike.append((ratio, candidate))
    return max(alike)[1] if alike else None


def _pieces(text: str) -> set[str]:
    return {*text, *map(str.__add__, text, text[1:])}
