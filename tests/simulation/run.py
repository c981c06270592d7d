"""python -m tests.simulation.run --seed N [--quiet]: one seed's transcript. --seeds A-B: which of these fail.

--faults stop_runner,kill_controller: only these, whatever the seed draws.
--hours 2: two hours of faults in one world.
--year: a year of mixed schedules instead; --days N: a shorter one, which is another story than that of the whole.
"""

import argparse
import json
import random
import sys
import time
import traceback
from collections.abc import Callable

from controller.core.audit import Audit
from tests.simulation.long_world import LongWorld
from tests.simulation.world import World
from tests.simulation.year_world import DAYS, YearWorld


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
    parser.add_argument("--faults", default="", help="names of tests/simulation/faults.py, with commas")
    parser.add_argument("--cancels", action="store_true", help="somebody cancels executions meanwhile")
    arguments = parser.parse_args()
    faults = tuple(name for name in arguments.faults.split(",") if name)
    if arguments.seeds:
        first, last = arguments.seeds.split("-")
        make = _maker(faults, None, arguments)
        return _hunt(range(int(first), int(last) + 1), make)
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
    return lambda seed: World(seed, show, faults, plain=plain, cancels=wanted.cancels, orders=orders)


def _hunt(seeds: range, make: Callable[[int], World]) -> int:
    began = time.perf_counter()
    failed = 0
    for seed in seeds:
        try:
            make(seed).run()
        except Exception as error:
            failed += 1
            frame = traceback.extract_tb(error.__traceback__)[-1]
            sys.stdout.write(f"seed {seed}: {type(error).__name__} {error} at {frame.name}:{frame.lineno}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{len(seeds)} seeds, {failed} failed, {time.perf_counter() - began:.1f} s\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
