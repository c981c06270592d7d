"""The checkers of orders bite: books that were tampered with are found out."""

from collections.abc import Iterator

import pytest

from cronring.controller.core.orders.orders import Cancel, Pause, SkipNext
from cronring.schema.execution import Outcome, SkipReason, Trigger
from tests.simulation.long_world import LongWorld
from tests.simulation.order_checkers import check_orders
from tests.simulation.policy_requests import check_requests
from tests.simulation.policy_ticks import Calendar
from tests.simulation.year_books import Book
from tests.simulation.year_history import Written, YearStore


@pytest.fixture(scope="module")
def world() -> LongWorld:
    """Two minutes with all orders in them."""
    world = LongWorld(7, seconds=120)
    world.run()
    return world


@pytest.fixture
def store(world: LongWorld) -> Iterator[YearStore]:
    """As it was, when the test is over."""
    store = world.database.store
    assert isinstance(store, YearStore)
    skipped, orders = [row.skipped for row in store.skips], list(store.orders)
    started_by, by_hand = dict(store.started_by), dict(store.by_hand)
    yield store
    for row, before in zip(store.skips, skipped, strict=True):
        row.skipped = before
    store.orders[:] = orders
    store.started_by, store.by_hand = started_by, by_hand


def judge(world: LongWorld, store: YearStore) -> None:
    calendar, now_us = Calendar(world.start_us), store.now_us()
    books = {job.job_id: Book(store, job, calendar, now_us) for job in store.jobs.values()}
    for book in books.values():
        book.check_accounts()
        check_orders(world, store, book)
    check_requests(world, store, books, [])


def change_reason(store: YearStore, order: Written, reason: SkipReason, wanted: SkipReason) -> bool:
    """Of what the order wrote."""
    for row in store.skips:
        if (row.job_id, row.decided_at, row.skipped.reason) == (order.job_id, order.at, reason):
            row.skipped = row.skipped._replace(reason=wanted)
            return True
    return False


def test_the_world_is_innocent(world: LongWorld, store: YearStore) -> None:
    judge(world, store)


def test_a_skipped_tick_with_another_reason(world: LongWorld, store: YearStore) -> None:
    orders = [order for order in store.orders if isinstance(order.given, SkipNext)]
    assert any(change_reason(store, order, SkipReason.CANCELLED, SkipReason.SUPERSEDED) for order in orders)
    with pytest.raises(AssertionError, match="is in the books as"):
        judge(world, store)


def test_a_tick_of_a_pause_with_another_reason(world: LongWorld, store: YearStore) -> None:
    orders = [order for order in store.orders if isinstance(order.given, Pause) and order.given.until is not None]
    assert sum(change_reason(store, order, SkipReason.PAUSED, SkipReason.NO_RUNNER) for order in orders)
    with pytest.raises(AssertionError, match="kept"):
        judge(world, store)


def test_a_run_of_a_cancelled_job(world: LongWorld, store: YearStore) -> None:
    for at, order in enumerate(store.orders):
        before = [row for row in store.executions.values() if row.job.job_id == order.job_id]
        if isinstance(order.given, Cancel) and before and before[0].execution_id <= order.executions:
            store.orders[at] = order._replace(executions=0)
            break
    with pytest.raises(AssertionError, match="and then began"):
        judge(world, store)


def test_a_run_that_was_not_told_of_its_job_s_cancellation(world: LongWorld, store: YearStore) -> None:
    for at, order in enumerate(store.orders):
        before = [
            row for row in store.executions.values()
            if row.job.job_id == order.job_id and row.cancel is None and row.outcome is Outcome.COMPLETED
            and row.execution_id <= order.executions
        ]  # fmt: skip
        if isinstance(order.given, Cancel) and before:
            store.orders[at] = order._replace(ends=0)
            break
    with pytest.raises(AssertionError, match="wasn't told"):
        judge(world, store)


def test_a_retry_by_hand_that_never_ran(world: LongWorld, store: YearStore) -> None:
    requested = {request.activation_id: request for request in store.requested if request.trigger is Trigger.RETRY}
    of_jobs_there = [number for number in store.by_hand if number in requested and not requested[number].job.removed]
    ran = next(number for number in of_jobs_there if store.started_by.get(number))
    del store.started_by[ran]
    with pytest.raises(AssertionError, match=r"was asked for, is gone, and never ran"):
        judge(world, store)
