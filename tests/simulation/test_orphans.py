"""Jobs made by hand lose their verbs and get them back, under faults; and the checker of that bites."""

from collections.abc import Iterator

import pytest

from cronring.controller.store.memory.rows import SkipRow
from cronring.schema.execution import SkipReason
from tests.simulation.long_world import LongWorld
from tests.simulation.orphaned import check_orphans
from tests.simulation.year_history import YearStore

SECOND_US = 1_000_000


@pytest.fixture(scope="module")
def world() -> LongWorld:
    """Three minutes, in which versions come without verbs, and with them again. It judges itself."""
    world = LongWorld(15, seconds=180)
    world.run()
    return world


@pytest.fixture
def store(world: LongWorld) -> Iterator[YearStore]:
    """As it was, when the test is over."""
    store = world.database.store
    assert isinstance(store, YearStore)
    skips, actions = [(row, row.skipped, row.decided_at) for row in store.skips], list(store.actions)
    yield store
    for row, skipped, decided_at in skips:
        row.skipped, row.decided_at = skipped, decided_at
    store.actions[:] = actions


def no_verb(store: YearStore) -> list[SkipRow]:
    return [row for row in store.skips if row.skipped.reason is SkipReason.NO_VERB]


def judge(world: LongWorld, store: YearStore) -> None:
    check_orphans(store, world.database.stepped_all_us + SECOND_US // 10)


def test_jobs_were_orphaned_and_came_back(world: LongWorld, store: YearStore) -> None:
    judge(world, store)
    kinds = [row.action for row in store.actions]
    assert kinds.count("orphan") > 3
    assert kinds.count("bring_back") > 1
    assert sum(row.skipped.ticks for row in no_verb(store)) > 3


def test_a_tick_that_another_reason_kept(world: LongWorld, store: YearStore) -> None:
    never = {row.job_id for row in store.actions if row.action == "orphan"}
    row = next(row for row in store.skips if row.job_id not in never)
    row.skipped = row.skipped._replace(reason=SkipReason.NO_VERB)
    with pytest.raises(AssertionError, match="its verb was there"):
        judge(world, store)


def test_a_tick_that_was_to_come(world: LongWorld, store: YearStore) -> None:
    row = no_verb(store)[0]
    row.skipped = row.skipped._replace(last_tick=store.now_us() + 3_600 * SECOND_US)
    with pytest.raises(AssertionError, match="its verb was there"):
        judge(world, store)


def test_a_job_that_nobody_deleted(world: LongWorld, store: YearStore) -> None:
    gone = next(row for row in store.jobs.values() if row.source == "api" and row.removed)
    store.actions[:] = [row for row in store.actions if (row.action, row.job_id) != ("delete", gone.job_id)]
    with pytest.raises(AssertionError, match="nobody deleted"):
        judge(world, store)


def test_an_orphan_that_goes_on(world: LongWorld, store: YearStore) -> None:
    orphaned = next(row for row in store.jobs.values() if row.source == "api" and not row.removed)
    before = orphaned.orphaned_at
    orphaned.orphaned_at = None if orphaned.orphaned else store.now_us()
    with pytest.raises(AssertionError, match=r"isn't orphaned|is orphaned"):
        judge(world, store)
    orphaned.orphaned_at = before
