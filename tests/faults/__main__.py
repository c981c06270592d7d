"""python -m tests.faults ROW ...: inject a fault into real processes, judge what came of it, and print the figures.

--list: the rows. --all: every one of them. --long: as long as in `make soak`. --keep: write the figures to
bench/results/faults. --table: write those that are kept into docs/reliability.md. Exit code 1 if something didn't hold.
"""

import argparse
import sys
from pathlib import Path

from tests.faults import table
from tests.faults.row import Row, all_rows
from tests.faults.trial import keep, play, teller


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--long", action="store_true", help="as long as in make soak")
    parser.add_argument("--seconds", type=float, help="how long it goes on")
    parser.add_argument("--keep", action="store_true", help="write the figures to bench/results/faults")
    parser.add_argument("--folder", type=Path, help="where logs and journal stay; by default a temporary folder")
    parser.add_argument("--table", action="store_true", help="write docs/reliability.md's table")
    arguments = parser.parse_args()
    rows = all_rows()
    if arguments.list:
        for row in rows.values():
            print(f"{row.name:24} {row.fault}")
    unknown = [name for name in arguments.rows if name not in rows]
    if unknown:
        parser.error(f"no such row: {', '.join(unknown)}; --list shows them")
    names = list(rows) if arguments.all else arguments.rows
    held = [_try(rows[name], arguments) for name in names]
    if arguments.table:
        table.write()
    return 0 if all(held) else 1


def _try(row: Row, arguments: argparse.Namespace) -> bool:
    missing = row.needs()
    if missing:
        print(f"{row.name}: not tried: {missing}")
        return not arguments.rows
    tell = teller()
    seconds = arguments.seconds or (row.long_s if arguments.long else row.short_s)
    tell(f"{row.name}, {seconds:g} s: {row.fault}")
    trial = play(row, seconds, tell, arguments.folder)
    tell(str(trial))
    if arguments.keep:
        tell(f"kept in {keep(trial).name}")
    return trial.holds


if __name__ == "__main__":
    sys.exit(main())
