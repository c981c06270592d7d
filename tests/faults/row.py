"""The rows of docs/reliability.md: each is a fault that really happens, and a command."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.faults.stage import Stage

ROWS: Final[dict[str, "Row"]] = {}
Act = Callable[["Stage"], None]


@dataclass(frozen=True)
class Row:
    """One fault. `short_s`, `long_s`: how long it goes on in `make test-long` and in `make soak`, in seconds.

    `needs`: says why it can't be tried on this machine, or nothing. `soak_only`: too long even in its short form.
    """

    name: str
    fault: str
    promise: str
    act: Act
    short_s: float
    long_s: float
    needs: Callable[[], str]
    soak_only: bool = False


def row(
    name: str, *, fault: str, promise: str, short_s: float, long_s: float, needs: Callable[[], str] = lambda: "",
    soak_only: bool = False,
) -> Callable[[Act], Act]:  # fmt: skip
    """The function plays the fault on a stage (tests/faults/stage.py); what holds is judged when it returns."""

    def add(act: Act) -> Act:
        assert name not in ROWS, f"two rows are named {name}"
        ROWS[name] = Row(name, fault, promise, act, short_s, long_s, needs, soak_only)
        return act

    return add


def all_rows() -> dict[str, Row]:
    """Of every rows_*.py beside this file, in the order of their files' names."""
    for path in sorted(Path(__file__).parent.glob("rows_*.py")):
        import_module(f"tests.faults.{path.stem}")
    return ROWS
