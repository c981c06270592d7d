"""What goes wrong in a year: PostgreSQL, runners or controllers are away, at random and around changes of clocks."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from cronring.virtual.clock import SECOND
from tests.simulation.year_workload import DAY_US

if TYPE_CHECKING:
    from tests.simulation.year_world import YearWorld

MINUTE_US: Final = 60_000_000
LONGEST_MINUTES: Final = 4_000
ALONE_MINUTES: Final = (
    300  # one that is left alone looks for others every few seconds, which costs, and tells nothing more
)


class Outage(NamedTuple):
    """`kind`: database, runners, runner, controllers or controller."""

    kind: str
    from_us: int
    until_us: int


def plan_outages(world: "YearWorld", until_us: int) -> list[Outage]:
    """Those of the whole year."""
    rng = world.rng
    planned: list[Outage] = []
    for kind, most in (("database", 7), ("runners", 6), ("controllers", 3), ("controller", 10), ("runner", 8)):
        for _ in range(rng.randint(0, world.often(most))):
            from_us = rng.randint(world.start_us + DAY_US, until_us - DAY_US)
            longest = ALONE_MINUTES if kind == "controller" else LONGEST_MINUTES
            planned.append(Outage(kind, from_us, from_us + int(MINUTE_US * longest ** rng.random())))
    for move in world.year.moves:
        if rng.random() < 0.5:
            from_us = move - rng.randint(-30, 300) * MINUTE_US
            kind = rng.choice(("database", "database", "runners", "controllers"))
            planned.append(Outage(kind, from_us, from_us + int(MINUTE_US * 600 ** rng.random())))
    return sorted((each for each in planned if each.until_us < until_us), key=lambda each: each.from_us)


def schedule_outages(world: "YearWorld", outages: list[Outage]) -> None:
    for outage in outages:
        begin, end = _ACTIONS[outage.kind]
        world.at(outage.from_us, partial(_begin, world, outage, begin))
        world.at(outage.until_us, partial(_end, world, outage, end))


Action = Callable[["YearWorld"], None]


def _begin(world: "YearWorld", outage: Outage, action: Action) -> None:
    world.log(f"OUTAGE {outage.kind} for {(outage.until_us - outage.from_us) // MINUTE_US} min")
    action(world)


def _end(world: "YearWorld", outage: Outage, action: Action) -> None:
    world.log(f"OUTAGE over: {outage.kind}")
    action(world)


def _database_goes(world: "YearWorld") -> None:
    world.database.away = True


def _database_comes(world: "YearWorld") -> None:
    world.database.away = False


def _runners_go(world: "YearWorld") -> None:
    """Killed or drained, one as the other."""
    world.runners_wanted = 0
    for runner in [runner for runner in world.runners if runner.alive]:
        (runner.kill if world.rng.random() < 0.5 else runner.drain)()


def _runner_goes(world: "YearWorld") -> None:
    runner = world.some_runner()
    if runner is not None and sum(each.alive for each in world.runners) > 1:
        (runner.kill if world.rng.random() < 0.5 else runner.drain)()


def _runners_come(world: "YearWorld") -> None:
    world.runners_wanted = world.runners_usual
    world.man_runners()


def _controllers_go(world: "YearWorld") -> None:
    for controller in [each for each in world.controllers if each.alive]:
        controller.kill()


def _controller_goes(world: "YearWorld") -> None:
    controller = world.some_controller()
    if controller is not None and sum(each.alive for each in world.controllers) > 1:
        if world.rng.random() < 0.5:
            controller.kill()
        else:
            world.drain(controller)


def _controllers_come(world: "YearWorld") -> None:
    for number, address in enumerate(world.addresses):
        world.clock.call_after(number * SECOND, partial(world.start_controller, address))


_ACTIONS: Final[dict[str, tuple[Action, Action]]] = {
    "database": (_database_goes, _database_comes),
    "runners": (_runners_go, _runners_come),
    "runner": (_runner_goes, _runners_come),
    "controllers": (_controllers_go, _controllers_come),
    "controller": (_controller_goes, _controllers_come),
}
