"""What goes wrong, drawn from the seed: each fault has a beginning and an end of its own."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from cronring.virtual.clock import MS, SECOND
from tests.simulation.database import ADDRESS as DATABASE
from tests.simulation.network import Link

if TYPE_CHECKING:
    from tests.simulation.world import World

Fault = Callable[["World"], None]


def kill_controller(world: "World") -> None:
    controller = world.some_controller()
    if controller is not None:
        world.log(f"FAULT kill {controller.name}")
        controller.kill()
        world.later(0.1, 15, lambda: world.start_controller(controller.address))


def drain_controller(world: "World") -> None:
    controller = world.some_controller()
    if controller is not None:
        world.log(f"FAULT drain {controller.name}")
        world.drain(controller)


def stop_controller(world: "World") -> None:
    controller = world.some_controller()
    if controller is not None:
        world.log(f"FAULT stop {controller.name}")
        controller.stop()

        def resume() -> None:
            if controller.alive:
                world.log(f"FAULT over: {controller.name} goes on")
                controller.resume()

        world.later(0.05, 14, resume)


def kill_runner(world: "World") -> None:
    runner = world.some_runner()
    if runner is not None:
        world.log(f"FAULT kill {runner.name}")
        runner.kill()
        world.later(0.1, 15, world.start_runner)


def stop_runner(world: "World") -> None:
    """Its process only: its children run on."""
    runner = world.some_runner()
    if runner is not None and not runner.stopped:
        world.log(f"FAULT stop {runner.name}")
        runner.stop()

        def resume() -> None:
            if runner.alive and runner.stopped:
                world.log(f"FAULT over: {runner.name} goes on")
                runner.resume()

        world.later(0.05, 14, resume)


def cut(world: "World", source: str, target: str, both: bool) -> None:
    world.log(f"FAULT cut {source} -> {target}{' and back' if both else ''}")
    world.network.cut(source, target)
    if both:
        world.network.cut(target, source)


def cut_controller_from_database(world: "World") -> None:
    controller = world.some_controller()
    if controller is not None:
        cut(world, controller.address, DATABASE, both=True)


def cut_runner(world: "World") -> None:
    """From some or all of the controllers."""
    runner = world.some_runner()
    if runner is not None:
        for address in world.addresses:
            if world.rng.random() < 0.7:
                cut(world, runner.name, address, both=world.rng.random() < 0.7)


def cut_controllers(world: "World") -> None:
    """Some from others, perhaps one way only."""
    if len(world.addresses) < 2:
        return
    one, other = world.rng.sample(world.addresses, 2)
    cut(world, one, other, both=world.rng.random() < 0.7)


def lose_packets(world: "World") -> None:
    loss = world.rng.random() * 0.5
    world.log(f"FAULT lose {loss:.2f} of all packets")
    world.network.default = Link(loss=loss)


def heal_network(world: "World") -> None:
    world.log("FAULT over: the network heals")
    world.network.heal()
    world.network.default = Link()


def database_away(world: "World") -> None:
    world.log("FAULT database away")
    world.database.away = True

    def back() -> None:
        world.log("FAULT over: database back")
        world.database.away = False

    world.later(0.05, 12, back)


def connections_break(world: "World") -> None:
    world.database.breaking = world.rng.random() * 0.6
    world.log(f"FAULT {world.database.breaking:.2f} of all connections break")

    def heal() -> None:
        world.log("FAULT over: connections hold")
        world.database.breaking = 0.0

    world.later(0.5, 8, heal)


def refuse_a_job(world: "World") -> None:
    """A row that PostgreSQL refuses to change: whatever is in the same statement isn't changed either."""
    store = world.database.store
    if store.jobs and store.refused_job is None:
        store.refused_job = world.rng.choice(list(store.jobs))
        world.log(f"FAULT job {store.refused_job} is refused")

        def heal() -> None:
            world.log("FAULT over: nothing is refused")
            store.refused_job = None

        world.later(0.5, 10, heal)


def step_database_clock(world: "World") -> None:
    by_us = int(world.rng.random() ** 3 * 1_500_000) * world.rng.choice((1, 1, -1))
    world.log(f"FAULT PostgreSQL's clock steps by {by_us} us")
    world.database.step_clock(by_us)


FAULTS: Final[tuple[tuple[int, Fault], ...]] = (
    (4, kill_controller),
    (2, drain_controller),
    (4, stop_controller),
    (4, kill_runner),
    (4, stop_runner),
    (3, cut_controller_from_database),
    (4, cut_runner),
    (3, cut_controllers),
    (2, lose_packets),
    (4, heal_network),
    (3, database_away),
    (3, connections_break),
    (2, step_database_clock),
    (2, refuse_a_job),
)


def schedule_faults(world: "World", until_ns: int, only: tuple[str, ...] = (), without: tuple[Fault, ...] = ()) -> None:
    """A seed has a few kinds of faults, so that each combination gets its turn, and every one its quiet moments.

    Unless the kinds are named. `without`: of kinds that are drawn, these don't happen.
    """
    if only:
        kinds = [kind for kind in FAULTS if kind[1].__name__ in only]
        assert len(kinds) == len(only), f"of {only} only {kinds} are faults"
    else:
        kinds = world.rng.sample([kind for kind in FAULTS if kind[1] not in without], world.rng.randint(1, 5))
    pause_ns = world.rng.choice((1, 3, 6)) * SECOND
    weights = [weight for weight, _ in kinds]

    def strike() -> None:
        if world.clock.now_ns >= until_ns:
            return
        world.rng.choices(kinds, weights)[0][1](world)
        world.clock.call_after(int(world.rng.random() * 2 * pause_ns) + MS, strike)

    world.clock.call_after(int(world.rng.random() * 4 * SECOND), strike)


def end_faults(world: "World") -> None:
    """All of them, at once; what is missing is started."""
    world.log("FAULT all over")
    world.network.heal()
    world.network.default = Link()
    world.database.away = False
    world.database.breaking = 0.0
    world.database.store.refused_job = None
    world.notify_loss = 0.0
    for controller in world.controllers:
        if controller.alive and controller.stopped:
            controller.resume()
    for runner in world.runners:
        if runner.alive and runner.stopped:
            runner.resume()
    for address in world.addresses:
        if world.controller_at(address) is None:
            world.start_controller(address)
    if not any(runner.alive for runner in world.runners):
        world.start_runner()
