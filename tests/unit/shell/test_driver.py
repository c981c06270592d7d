import asyncio
from collections.abc import Callable

import pytest

from cronring.controller.core.node.effects import Effect, Leave, Level, LogLine
from cronring.controller.core.node.events import DrainExpired, Event, JobsNotified, RunnerLeft, Woke
from cronring.controller.runtime.clock import SystemClock
from cronring.controller.runtime.driver import INBOX_EVENTS_MAX, TURN_EVENTS_MAX, Driver
from tests.support.waiting import TIMEOUT_S


class Script:
    """A machine that logs what it gets, wakes when told, and leaves on DrainExpired."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.deadline_ns: int | None = None
        self.steps_at_ns: list[int] = []

    def step(self, event: Event, now_ns: int) -> list[Effect]:
        self.events.append(event)
        self.steps_at_ns.append(now_ns)
        if isinstance(event, Woke):
            self.deadline_ns = None
        if event == RunnerLeft("broken"):
            raise RuntimeError("a rule is broken")
        return [Leave()] if isinstance(event, DrainExpired) else [LogLine(Level.INFO, type(event).__name__, {})]

    def next_deadline(self) -> int | None:
        return self.deadline_ns


def ignore(effect: Effect) -> None:
    """The script's log lines are of no interest."""


def made(perform: Callable[[Effect], None] = ignore) -> tuple[Script, Driver, SystemClock]:
    clock, script = SystemClock(), Script()
    return script, Driver(script, clock, perform), clock


async def test_events_are_stepped_in_order_and_effects_performed_until_it_leaves() -> None:
    performed: list[Effect] = []
    script, driver, _ = made(performed.append)
    for event in (JobsNotified(), RunnerLeft("r"), DrainExpired(), JobsNotified()):
        driver.put(event)
    await driver.run()
    assert script.events == [JobsNotified(), RunnerLeft("r"), DrainExpired()]
    assert performed == [LogLine(Level.INFO, "JobsNotified", {}), LogLine(Level.INFO, "RunnerLeft", {})]


async def test_it_wakes_at_the_deadline_and_not_before() -> None:
    script, driver, clock = made()
    deadline_ns = script.deadline_ns = clock.now_ns() + 20_000_000
    running = asyncio.ensure_future(driver.run())
    while not script.events:
        await asyncio.sleep(0)
    driver.put(DrainExpired())
    await running
    assert script.events == [Woke(), DrainExpired()]
    assert script.steps_at_ns[0] >= deadline_ns


async def test_an_event_ends_a_wait_without_a_deadline() -> None:
    script, driver, _ = made()
    running = asyncio.ensure_future(driver.run())
    await asyncio.sleep(0)  # into the wait
    driver.put(JobsNotified())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    driver.put(DrainExpired())
    async with asyncio.timeout(TIMEOUT_S):
        await running
    assert script.events == [JobsNotified(), DrainExpired()]


async def test_what_the_node_raises_ends_the_loop() -> None:
    _, driver, _ = made()
    driver.put(RunnerLeft("broken"))
    with pytest.raises(RuntimeError, match="a rule is broken"):
        await driver.run()


async def test_what_an_effect_raises_ends_the_loop() -> None:
    def refuse(effect: Effect) -> None:
        raise OSError("no")

    _, driver, _ = made(refuse)
    driver.put(JobsNotified())
    with pytest.raises(OSError, match="no"):
        await driver.run()


async def test_a_failure_elsewhere_ends_the_loop_while_it_waits() -> None:
    _, driver, _ = made()
    asyncio.get_running_loop().call_soon(driver.fail, ValueError("a task broke"))
    async with asyncio.timeout(TIMEOUT_S):
        with pytest.raises(ValueError, match="a task broke"):
            await driver.run()


async def test_a_flood_leaves_sockets_their_turn() -> None:
    script, driver, _ = made()
    for _ in range(4 * TURN_EVENTS_MAX):
        driver.put(JobsNotified())
    driver.put(DrainExpired())
    seen: list[int] = []

    async def other() -> None:
        while not seen or seen[-1] < 4 * TURN_EVENTS_MAX:
            seen.append(len(script.events))
            await asyncio.sleep(0)

    async with asyncio.timeout(TIMEOUT_S):
        await asyncio.gather(driver.run(), other())
    assert len([count for count in seen if 0 < count < 4 * TURN_EVENTS_MAX]) >= 3


async def test_a_full_inbox_holds_up_whoever_can_wait() -> None:
    script, driver, _ = made()
    for _ in range(INBOX_EVENTS_MAX + 1):
        driver.put(JobsNotified())
    room = asyncio.ensure_future(driver.room())
    await asyncio.sleep(0)
    assert not room.done()
    driver.put(DrainExpired())
    await driver.run()
    await asyncio.wait_for(room, TIMEOUT_S)
    assert len(script.events) > 1
