"""In which order files of tests are tried: those that wait for real clusters spread among those that compute.

Workers take files in this order. Alphabetically, the machine would idle through the first half and be short of cores in
the second.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, TypeVar

from xdist.scheduler import LoadFileScheduling

ROOT: Final = Path(__file__).parent
# docs/decisions/0041: in alphabetical order the machine idles, then is short of cores
WAITING: Final = ("faults", "integration", "acceptance", "attacks")
# What takes a minute or more, in either lane: first of all, as one that is left to the end is waited for.
LONGEST: Final = (
    "plans/test_execution_lists.py",
    "conformance/test_changed_runs.py",
    "integration/trust/test_letting_in.py",
    "acceptance/test_distributions.py",
)
# Folders whose files share what is dear: one worker takes all of them. To fill a database of plans takes 6 s of CPU.
TOGETHER: Final = ("tests/plans/",)
ENDS: Final = 0.8  # by then all that wait have been begun: quick files fill the rest evenly
T = TypeVar("T")


def mixed(files: Iterable[Path]) -> list[Path]:
    """Those that wait at even distances, in the orders above, and the others in the given order."""
    every = list(files)
    waiting = sorted((file for file in every if _waits(file)), key=_turn)
    return spread(waiting, [file for file in every if not _waits(file)])


def spread(few: Sequence[T], many: Sequence[T]) -> list[T]:
    """Both in their own orders, `few` at even distances, one of them in front, and the last well before the end."""
    places = [(ENDS * number / max(1, len(few)), 0, each) for number, each in enumerate(few)]
    places += [((number + 0.5) / max(1, len(many)), 1, each) for number, each in enumerate(many)]
    return [each for _, _, each in sorted(places, key=lambda place: place[:2])]


def _waits(file: Path) -> bool:
    return _name(file) in LONGEST or _folder(file) in WAITING


def _turn(file: Path) -> int:
    return LONGEST.index(_name(file)) if _name(file) in LONGEST else len(LONGEST) + WAITING.index(_folder(file))


def _name(file: Path) -> str:
    return file.relative_to(ROOT).as_posix() if file.is_relative_to(ROOT) else ""


def _folder(file: Path) -> str:
    return _name(file).partition("/")[0]


class TogetherScheduling(LoadFileScheduling):  # type: ignore[misc]  # as above
    """A worker takes a file, as by `--dist loadfile`, or all files of a folder of TOGETHER."""

    def _split_scope(self, nodeid: str) -> str:
        together = next((folder for folder in TOGETHER if nodeid.startswith(folder)), None)
        return together or str(super()._split_scope(nodeid))
