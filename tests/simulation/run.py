"""python -m tests.simulation.run --seed N [--quiet]: one seed's transcript. --seeds A-B: which of these fail.

--jobs N: hunts in so many processes; a line each half a minute tells how far they are.
--faults stop_runner,kill_child: only these of faults.py and table faults.py, whatever the seed draws.
--without-table faults: as worlds were before there were any.
--hours 2: two hours of faults in one world.
--year: a year of mixed schedules instead; --days N: a shorter one, which is another story than that of the whole.
"""

import argparse
import json
import random
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from cronring.controller.core.ledger.audit import Audit
from tests.simulation.long_world import LongWorld
from tests.simulation.world import World
from tests.simulation.year_world import DAYS, YearWorld

PROGRESS_S = 30.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seeds", help="a range, such as 1-500")
    parser.add_argument("--year", action="store_true", help="a year of schedules, instead of half a minute of faults")
    parser.add_argument("--days", type=int, default=DAYS, help="of the year")
    parser.add_argument("--hours", type=float, help="of faults, operators and policies in one world")
    parser.add_argument("--quiet", action="store_true", help="only the digest")
    parser.add_argument("--plain", action="store_true", help="no policies and no operator, whatever the seed draws")
    parser.add_argument("--without-orders", action="store_true", help="as policies were before there were orders")
    parser.add_argument("--without-table-faults", action="store_true", help="none of tests/simulation/table_faults.py")
    parser.add_argument("--places", action="store_true", help="runners have few places, whatever the seed draws")
    parser.add_argument("--without-places", action="store_true", help="runners have children for everything")
    parser.add_argument("--faults", default="", help="names of faults.py and table_faults.py, with commas")
    parser.add_argument("--jobs", type=int, default=1, help="processes that hunt")
    parser.add_argument("--cancels", action="store_true", help="somebody cancels executions meanwhile")
    arguments = parser.parse_args()
    faults = tuple(name for name in arguments.faults.split(",") if name)
    if arguments.seeds:
        first, last = arguments.seeds.split("-")
        return _hunt(range(int(first), int(last) + 1), partial(_try, faults, arguments), arguments.jobs)
    seed = random.SystemRandom().randrange(1_000_000_000) if arguments.hours else 0
    seed = seed if arguments.seed is None else arguments.seed
    began = time.perf_counter()
    world = _maker(faults, None if arguments.quiet else print, arguments)(seed)
    try:
        world.run()
    finally:
        sys.stdout.write(f"seed {seed} digest {world.digest}\n")
    if arguments.hours:
        _tell(world.audit, time.perf_counter() - began)
    return 0


def _tell(audit: Audit, seconds: float) -> None:
    told = {
        "ticks": audit.ticks, "executed": audit.executed, "skipped": dict(sorted(audit.skipped.items())),
        "late": audit.late, "unaccounted": audit.unaccounted, "duplicates": audit.duplicates, "early": audit.early,
        "undue": audit.undue,
    }  # fmt: skip
    sys.stdout.write(f"clean in {seconds:.0f} s: {json.dumps(told)}\n")


def _maker(
    faults: tuple[str, ...], show: Callable[[str], None] | None, wanted: argparse.Namespace
) -> Callable[[int], World]:
    if wanted.year:
        return lambda seed: YearWorld(seed, show, wanted.days)
    if wanted.hours:
        return lambda seed: LongWorld(seed, show, wanted.hours * 3_600)
    plain, orders = True if wanted.plain else None, False if wanted.without_orders else None
    hard = False if wanted.without_table_faults else None
    places = True if wanted.places else False if wanted.without_places else None
    return lambda seed: World(
        seed, show, faults, plain=plain, cancels=wanted.cancels, orders=orders, hard=hard, places=places
    )


def _try(faults: tuple[str, ...], wanted: argparse.Namespace, seed: int) -> tuple[int, str]:
    """(seed, what fails in it); "": nothing."""
    try:
        _maker(faults, None, wanted)(seed).run()
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return seed, f"{type(error).__name__} {error} at {frame.name}:{frame.lineno}"
    return seed, ""


def _hunt(seeds: range, attempt: Callable[[int], tuple[int, str]], jobs: int) -> int:
    began = told = time.perf_counter()
    failed = 0
    for done, (seed, why) in enumerate(_attempts(seeds, attempt, jobs), 1):
        if why:
            failed += 1
            sys.stdout.write(f"seed {seed}: {why}\n")
            sys.stdout.flush()
        if time.perf_counter() - told >= PROGRESS_S:
            told = time.perf_counter()
            sys.stderr.write(f"{done} of {len(seeds)} seeds, {failed} failed, {told - began:.0f} s\n")
    sys.stdout.write(f"{len(seeds)} seeds, {failed} failed, {time.perf_counter() - began:.1f} s\n")
    return 1 if failed else 0


def _attempts(seeds: range, attempt: Callable[[int], tuple[int, str]], jobs: int) -> Iterator[tuple[int, str]]:
    if jobs == 1:
        yield from map(attempt, seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(attempt, seeds, chunksize=8)


if __name__ == "__main__":
    sys.exit(main())
