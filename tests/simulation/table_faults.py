"""More that goes wrong: what the table of faults in docs/reliability.md names, beside faults.py.

Which worlds have table faults, and which, is drawn by a generator of its own: all others remain the stories they
were. As
in faults.py each has a beginning, and an end that it sees to itself, or `end_table_faults`.
"""

import random
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from cronring.schema.execution import Outcome, Report
from cronring.virtual.clock import MS, SECOND
from tests.simulation.database import ADDRESS as DATABASE
from tests.simulation.network import Drag
from tests.simulation.runners import Runner

if TYPE_CHECKING:
    from tests.simulation.world import World

TableFault = Callable[["World"], None]
SHARE: Final = 0.5  # of all worlds
ALONE_SHARE: Final = 0.5  # of those: without any of faults.py
FLOOD: Final = 100  # reports at once
FAR_US: Final = 60_000_000
# Worlds last less than a minute: a clock that is set back by more stops every job until they are over.
BACK_US: Final = 12_000_000
FLAP_NS: Final = SECOND


def draw(seed: int) -> bool:
    return random.Random(f"whether {seed} has hardships").random() < SHARE


def _after(world: "World", low_s: float, high_s: float, action: Callable[[], None]) -> None:
    world.clock.call_after(int(world.hard_rng.uniform(low_s, high_s) * SECOND), action)


# Children


def kill_child(world: "World") -> None:
    runner = _some_runner(world)
    if runner is not None and runner.running and not runner.stopped:
        running = world.hard_rng.choice(runner.running)
        world.log(f"FAULT the child of {running.run.execution_id} is killed")
        runner.crash(running)


def stop_child(world: "World") -> None:
    """Its runner ends it at the run's deadline, or when it is to stop: SIGKILL reaches what stands still."""
    runner = _some_runner(world)
    if runner is None or not runner.running:
        return
    running = world.hard_rng.choice(runner.running)
    if running.left_ns is None and running.stops_ns is None:
        world.log(f"FAULT the child of {running.run.execution_id} stands still")
        runner.freeze(running)
        _after(world, 0.1, 12, lambda: runner.thaw(running))


def overload(world: "World") -> None:
    """A runner has fewer children than there is to run."""
    runner = _some_runner(world)
    if runner is not None and runner.places is None:
        runner.places = world.hard_rng.choice((1, 1, 2))
        world.log(f"FAULT {runner.name} has {runner.places} children")

        def relieve() -> None:
            world.log(f"FAULT over: {runner.name} has children for everything")
            runner.places = None
            runner.call_up()

        _after(world, 3, 15, relieve)


# Runners that lie


def lie(world: "World") -> None:
    """To every controller: none may believe it, and nobody else be disturbed by it."""
    runner = _some_runner(world)
    if runner is None or runner.stopped:
        return
    kind = world.hard_rng.choice((_twice, _never_had, _wrong_claim, _long_ago))
    reports = kind(world, runner)
    if reports:
        world.log(f"FAULT {runner.name} lies: {kind.__name__} {[report.execution_id for report in reports]}")
        runner.tell(reports)


def flood(world: "World") -> None:
    """For a while, of ends that are none."""
    runner = _some_runner(world)
    if runner is None:
        return
    world.log(f"FAULT {runner.name} floods")
    ends_ns = world.clock.now_ns + int(world.hard_rng.uniform(0.2, 3) * SECOND)

    def more() -> None:
        if runner.alive and world.clock.now_ns < ends_ns:
            now_us = world.database.now_us()
            first = world.hard_rng.randrange(1_000_000)
            runner.tell([_false(first + n, 1, now_us) for n in range(FLOOD)])
            world.clock.call_after(200 * MS, more)

    more()


def _twice(world: "World", runner: Runner) -> list[Report]:
    """What it ended, and what is acknowledged: otherwise than it did."""
    return [_otherwise(report) for report in _acknowledged(world, runner)[-3:]]


def _long_ago(world: "World", runner: Runner) -> list[Report]:
    return _acknowledged(world, runner)[:5]


def _acknowledged(world: "World", runner: Runner) -> list[Report]:
    store = world.database.store
    return [
        row.report for row in store.executions.values()
        if row.runner_id == runner.name and row.report is not None
    ]  # fmt: skip


def _never_had(world: "World", runner: Runner) -> list[Report]:
    """What others have, by its true claim; and what nobody has."""
    now_us = world.database.now_us()
    others = [row for row in world.database.store.unfinished.values() if row.runner_id != runner.name]
    lies = [_false(row.execution_id, row.job.job_id, row.claimed_at, now_us) for row in others]
    return [*lies, _false(10_000_000 + world.hard_rng.randrange(1_000), 1, now_us)]


def _wrong_claim(world: "World", runner: Runner) -> list[Report]:
    """What it has: it may lose its own results by that, and nobody else anything."""
    now_us = world.database.now_us()
    own = [running.run for running in runner.running]
    runner.lied_about.update((run.execution_id, None) for run in own)
    return [_false(run.execution_id, run.job_id, run.claimed_at_us - 1_000, now_us) for run in own]


def _false(execution_id: int, job_id: int, claimed_at: int, ended_at: int = 0) -> Report:
    ended_at = max(claimed_at, ended_at)
    return Report(execution_id, job_id, claimed_at, Outcome.COMPLETED, claimed_at, ended_at, "Lie", "", "")


def _otherwise(report: Report) -> Report:
    outcome = Outcome.FAILED if report.outcome is Outcome.COMPLETED else Outcome.COMPLETED
    return report._replace(outcome=outcome, error_type="Lie")


# Network


def drag(world: "World") -> None:
    """Slow, and lossy: for everybody, or around one address. Streams lose nothing, and are late for it."""
    delay_ns = int(world.hard_rng.choice((20, 100, 300, 600)) * MS)
    loss = world.hard_rng.choice((0.0, 0.0, 0.1, 0.3))
    everybody = world.hard_rng.random() < 0.5
    between = () if everybody else (world.hard_rng.choice(world.addresses),)
    world.log(f"FAULT up to {delay_ns // MS} ms one way, {loss} lost, between {between or 'all'}")
    world.network.drag = Drag(random.Random(world.hard_rng.getrandbits(64)), delay_ns, loss, between)

    def over() -> None:
        world.log("FAULT over: the network is fast")
        world.network.drag = None

    _after(world, 1, 12, over)


def flap(world: "World") -> None:
    """A link is down each other second."""
    ends = _some_link(world)
    if ends is None:
        return
    one, other = ends
    both = world.hard_rng.random() < 0.7
    world.log(f"FAULT the link {one} -> {other} flaps{', and back' if both else ''}")
    ends_ns = world.clock.now_ns + int(world.hard_rng.uniform(3, 14) * SECOND)
    directions = [(one, other), (other, one)] if both else [(one, other)]

    def turn(down: bool) -> None:
        down = down and world.clock.now_ns < ends_ns
        for source, target in directions:
            (world.network.cut if down else world.network.mend)(source, target)
        if world.clock.now_ns < ends_ns:
            world.clock.call_after(FLAP_NS, partial(turn, not down))

    turn(True)


def cut_runner_from_one(world: "World") -> None:
    """For a while, both ways or one; all others hear it."""
    runner = _some_runner(world)
    if runner is not None:
        _cut_for_a_while(world, runner.name, world.hard_rng.choice(world.addresses))


def lose_one_way(world: "World") -> None:
    ends = _some_link(world)
    if ends is not None:
        _cut_for_a_while(world, *ends, both=False)


def _cut_for_a_while(world: "World", source: str, target: str, both: bool | None = None) -> None:
    both = world.hard_rng.random() < 0.6 if both is None else both
    directions = [(source, target), (target, source)] if both else [(source, target)]
    world.log(f"FAULT cut {source} -> {target}{' and back' if both else ''} for a while")
    for direction in directions:
        world.network.cut(*direction)

    def mend() -> None:
        world.log(f"FAULT over: {source} -> {target}")
        for direction in directions:
            world.network.mend(*direction)

    _after(world, 0.5, 14, mend)


def _some_link(world: "World") -> tuple[str, str] | None:
    ends = [*world.addresses, DATABASE, *(runner.name for runner in world.runners if runner.alive)]
    one, other = world.hard_rng.choice(world.addresses), world.hard_rng.choice(ends)
    if one == other:
        return None
    return (one, other) if world.hard_rng.random() < 0.5 else (other, one)


# Controllers


def kill_all_controllers(world: "World") -> None:
    world.log("FAULT all controllers are killed")
    for controller in world.controllers:
        if controller.alive:
            controller.kill()
            _after(world, 0.5, 14, partial(world.start_controller, controller.address))


def restart_all_controllers(world: "World") -> None:
    """One by one, as an upgrade does it."""
    world.log("FAULT rolling restart")
    for at, address in enumerate(world.addresses):

        def restart(address: str = address) -> None:
            controller = world.controller_at(address)
            if controller is not None and not controller.stopped and not controller.node.draining:
                world.drain(controller)

        world.clock.call_after(at * int(world.hard_rng.uniform(1, 4) * SECOND), restart)


# PostgreSQL


def _while_(world: "World", low_s: float, high_s: float, name: str, value: object, was: object) -> None:
    setattr(world.database.trouble, name, value)
    world.log(f"FAULT PostgreSQL: {name} {value}")

    def over() -> None:
        world.log(f"FAULT over: {name}")
        setattr(world.database.trouble, name, was)

    _after(world, low_s, high_s, over)


def database_slow(world: "World") -> None:
    _while_(world, 1, 12, "slow_s", world.hard_rng.choice(((0.1, 1.0), (0.1, 0.3), (0.0, 2.5))), (0.0, 0.0))


def disk_full(world: "World") -> None:
    _while_(world, 1, 12, "full", world.hard_rng.choice((1.0, 1.0, 0.5)), 0.0)


def statement_timeouts(world: "World") -> None:
    _while_(world, 1, 10, "cancelled", world.hard_rng.choice((0.3, 0.7)), 0.0)


def crash_database(world: "World") -> None:
    """It recovers: what had committed stays, of what was under way nobody knows."""
    _crash(world, 0.3, 8, 0)


def fail_over(world: "World") -> None:
    """To a synchronous standby, so nothing is lost; its clock is another."""
    _crash(world, 2, 12, int(world.hard_rng.uniform(-80_000, 80_000)))


def _crash(world: "World", low_s: float, high_s: float, by_us: int) -> None:
    if world.database.away:
        return
    world.log(f"FAULT PostgreSQL crashes; when it is back, its clock differs by {by_us} us")
    world.database.trouble.break_all()
    world.database.away = True
    if by_us:
        world.database.step_clock(by_us)

    def back() -> None:
        world.log("FAULT over: PostgreSQL is back")
        world.database.away = False

    _after(world, low_s, high_s, back)


def connection_storm(world: "World") -> None:
    """pg_terminate_backend of everything, every second."""
    world.log("FAULT all connections break each second")
    ends_ns = world.clock.now_ns + int(world.hard_rng.uniform(2, 12) * SECOND)

    def strike() -> None:
        world.database.trouble.break_all()
        if world.clock.now_ns < ends_ns:
            world.clock.call_after(SECOND, strike)

    strike()


def silence_controller(world: "World") -> None:
    """Packets between a controller and PostgreSQL are dropped, and nobody is told: no RST, no error, no answer."""
    address = world.hard_rng.choice(world.addresses)
    trouble = world.database.trouble
    deaf = world.hard_rng.random() < 0.3
    world.log(f"FAULT packets from PostgreSQL to {address}{'' if deaf else ', and back,'} are dropped")
    (trouble.deaf if deaf else trouble.silent)[address] = None

    def over() -> None:
        world.log(f"FAULT over: packets between PostgreSQL and {address} pass")
        trouble.speak(address)

    _after(world, 0.5, 14, over)


def step_clock_far(world: "World") -> None:
    rng = world.hard_rng
    if world.database.stepped_all_us > FAR_US // 4 or rng.random() < 0.6:
        return  # checkers allow for all steps there were: more, and they would see nothing
    by_us = int(rng.uniform(1_000_000, FAR_US)) if rng.random() < 0.5 else -int(rng.uniform(1_000_000, BACK_US))
    world.log(f"FAULT PostgreSQL's clock steps far, by {by_us} us")
    world.database.step_clock(by_us)


def shake_clock(world: "World") -> None:
    """Far and often: checkers that compare instants see little then, but each tick is still accounted for once."""
    rng = world.hard_rng
    by_us = int(rng.uniform(1_000_000, FAR_US)) if rng.random() < 0.5 else -int(rng.uniform(1_000_000, BACK_US))
    world.log(f"FAULT PostgreSQL's clock steps far, by {by_us} us")
    world.database.step_clock(by_us)


TABLE_FAULTS: Final[tuple[tuple[int, TableFault], ...]] = (
    (6, kill_child),
    (4, stop_child),
    (2, overload),
    (6, lie),
    (1, flood),
    (3, drag),
    (3, flap),
    (3, cut_runner_from_one),
    (3, lose_one_way),
    (2, kill_all_controllers),
    (1, restart_all_controllers),
    (2, database_slow),
    (2, disk_full),
    (2, statement_timeouts),
    (3, crash_database),
    (2, fail_over),
    (2, connection_storm),
    (3, silence_controller),
    (1, step_clock_far),
)


ON_DEMAND: Final[tuple[tuple[int, TableFault], ...]] = ((1, shake_clock),)  # only if they are named


def schedule_table_faults(world: "World", until_ns: int, only: tuple[str, ...] = ()) -> bool:
    """A few kinds, unless they are named. Whether that is all that goes wrong: there may be faults beside them."""
    rng = world.hard_rng
    world.database.trouble.rng = random.Random(rng.getrandbits(64))
    kinds = [kind for kind in TABLE_FAULTS + ON_DEMAND if kind[1].__name__ in only]
    if not only:
        kinds = rng.sample(TABLE_FAULTS, rng.randint(1, 4))
    pause_ns = rng.choice((1, 3, 6)) * SECOND
    weights = [weight for weight, _ in kinds]

    def strike() -> None:
        if world.clock.now_ns < until_ns:
            rng.choices(kinds, weights)[0][1](world)
            world.clock.call_after(int(rng.random() * 2 * pause_ns) + MS, strike)

    world.clock.call_after(int(rng.random() * 4 * SECOND), strike)
    return rng.random() < ALONE_SHARE


def end_table_faults(world: "World") -> None:
    """All of them; what faults.py has to end, it ends."""
    world.network.drag = None
    world.database.trouble.end()
    for runner in world.runners:
        for running in runner.running:
            runner.thaw(running)
        runner.places = None
        runner.call_up()


def names() -> frozenset[str]:
    return frozenset(kind.__name__ for _, kind in TABLE_FAULTS + ON_DEMAND)


def _some_runner(world: "World") -> Runner | None:
    able = [runner for runner in world.runners if runner.alive]
    return world.hard_rng.choice(able) if able else None
