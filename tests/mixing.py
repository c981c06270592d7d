"""In which order files of tests are tried: those that wait for real clusters spread among those that compute.

Workers take files in this order. Alphabetically, the machine would idle through the first half and be short of cores in
the second.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, TypeVar

ROOT: Final = Path(__file__).parent
# docs/decisions/0041: in alphabetical order the machine idles, then is short of cores
WAITING: Final = ("faults", "integration", "acceptance", "attacks")  # the longest first: none is left to the end
T = TypeVar("T")


def mixed(files: Iterable[Path]) -> list[Path]:
    """Those that wait at even distances, in the order of their folders above, and the others in the given order."""
    every = list(files)
    waiting = sorted(
        (file for file in every if _folder(file) in WAITING), key=lambda file: WAITING.index(_folder(file))
    )
    return spread(waiting, [file for file in every if _folder(file) not in WAITING])


def spread(few: Sequence[T], many: Sequence[T]) -> list[T]:
    """Both in their own orders, `few` at even distances, one of them in front."""
    places = [(number / max(1, len(few)), 0, each) for number, each in enumerate(few)]
    places += [((number + 0.5) / max(1, len(many)), 1, each) for number, each in enumerate(many)]
    return [each for _, _, each in sorted(places, key=lambda place: place[:2])]


def _folder(file: Path) -> str:
    return file.relative_to(ROOT).parts[0] if file.is_relative_to(ROOT) else ""
