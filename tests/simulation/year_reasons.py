"""Whether a skipped tick's reason can be true, and whether what the policy says of starts was kept."""

from itertools import pairwise
from typing import TYPE_CHECKING, Final, assert_never

from cronring.controller.store.memory.rows import SkipRow, StoredExecution
from cronring.schema.execution import SkipReason
from tests.simulation.year_books import Book, brief, ended_at
from tests.simulation.year_oracle import is_cron, length_us, policy_of, slice_of, window_of

if TYPE_CHECKING:
    from tests.simulation.year_world import YearWorld

SECOND_US: Final = 1_000_000
HOUR_US: Final = 3_600 * SECOND_US
MISSED_AFTER_US: Final = 10 * SECOND_US
RUN_ALL_US: Final = 24 * HOUR_US
RECOVERY_US: Final = 3 * HOUR_US  # until everything that a stretched cluster does by the hour has been done
AT_ONCE_US: Final = 3 * SECOND_US


def check_windows(book: Book) -> None:
    """What runs by the schedule lies in the window, what is skipped as outside lies outside."""
    for tick, row in book.of_tick.items():
        contains = window_of(book.span_of(tick).policy)
        assert contains is None or contains(tick), book.says(f"{row.execution_id} of {tick} ran outside its window")
    for tick, skip in book.skips.items():
        if skip.skipped.reason is SkipReason.OUTSIDE_WINDOW:
            contains = window_of(book.span_of(tick).policy)
            assert contains is not None, book.says(f"{tick} is outside of no window")
            assert not contains(tick), book.says(f"{tick} is in its window, and was skipped: {skip}")


def check_reasons(world: "YearWorld", book: Book) -> None:
    for row in book.ranges:
        ticks = slice_of(book.due, row.skipped.first_tick, row.skipped.last_tick)
        plausible = _is_plausible(world, book, row, ticks)
        assert plausible, book.says(f"no reason for {row}, ticks {ticks[:5]}, policy {book.policy_at(ticks[0])}")


def _is_plausible(world: "YearWorld", book: Book, row: SkipRow, ticks: list[int]) -> bool:
    reason = row.skipped.reason
    match reason:
        case SkipReason.PAUSED:
            plausible = all(_was_paused(world, book, row, tick) for tick in ticks)
        case SkipReason.MISSED_POLICY:
            plausible = all(_was_missed(book, row, tick) for tick in ticks)
        case SkipReason.SUPERSEDED:
            plausible = _was_superseded(book, row)
        case SkipReason.OVERLAP:
            plausible = all(_overlapped(book, row, tick) for tick in ticks)
        case SkipReason.NO_RUNNER:
            plausible = all(_had_no_runner(world, book, tick, row.decided_at) for tick in ticks)
        case SkipReason.OUTSIDE_WINDOW | SkipReason.NO_VERB:
            plausible = True  # see check_windows, check_orphans
        case SkipReason.DEPLOYMENT_REMOVED | SkipReason.CANCELLED:
            plausible = _closes(book, row)
        case _:
            assert_never(reason)
    return plausible


def _closes(book: Book, row: SkipRow) -> bool:
    """It was written when its books were closed."""
    until = book.span_of(row.skipped.first_tick).until_at
    if until is None or row.skipped.last_tick > until:
        return False
    since = until - _early_us(book, row.skipped.first_tick) - AT_ONCE_US
    return since <= row.decided_at <= until + AT_ONCE_US


def _early_us(book: Book, tick: int) -> int:
    """How long before its tick a run may start."""
    span = book.span_of(tick)
    return length_us(span.schedule.partition(" ")[2]) // 2 if "±" in span.policy else 0


def _next(book: Book, tick: int) -> int:
    """By then the tick's jitter is over."""
    following = book.next_due(tick)
    return book.now_us if following is None else following


def _was_paused(world: "YearWorld", book: Book, row: SkipRow, tick: int) -> bool:
    for pause in book.pauses:
        until = book.now_us if pause.until is None else pause.until
        if not (pause.since <= row.decided_at <= until and tick <= until):
            continue
        begun = tick >= pause.since or _next(book, tick) > pause.since
        if begun or book.running_at(tick - _early_us(book, tick), pause.since) or world.troubled(tick, pause.since):
            return True
    return False


def _was_missed(book: Book, row: SkipRow, tick: int) -> bool:
    policy = book.policy_at(tick)
    age = row.decided_at - tick + _early_us(book, tick)
    if policy.get("on_missed") == "skip" and policy.get("overlap") != "buffer_all":
        return age > MISSED_AFTER_US
    if "catch_up_window" in policy:
        return age > length_us(str(policy["catch_up_window"]))
    if policy.get("on_missed") == "skip" and age > MISSED_AFTER_US:
        return True
    return (policy.get("on_missed") == "run_all" or policy.get("overlap") == "buffer_all") and age > RUN_ALL_US


def _was_superseded(book: Book, row: SkipRow) -> bool:
    if _closes(book, row):
        return True
    last = row.skipped.last_tick
    ran_for_it = any(
        execution.tick > last and abs(execution.claimed_at - row.decided_at) <= AT_ONCE_US
        for execution in book.of_ticks
    )
    return ran_for_it or _came_too_soon(book, row)


def _came_too_soon(book: Book, row: SkipRow) -> bool:
    """After a run that was late, by the minimum interval."""
    span = book.span_of(row.skipped.last_tick)
    before = [execution for execution in book.of_ticks if execution.tick < row.skipped.first_tick]
    if not before or not _distance_us(span.schedule, span.policy):
        return False
    return row.skipped.first_tick < _earliest(before[-1], _distance_us(span.schedule, span.policy))


def _overlapped(book: Book, row: SkipRow, tick: int) -> bool:
    policy = book.policy_at(tick)
    running = book.running_at(tick - _early_us(book, tick), max(_next(book, tick), tick))
    if policy.get("overlap") == "allow" and not _closes(book, row):
        return len(running) >= int(str(policy.get("max_concurrent", 10)))
    return bool(running)


def _had_no_runner(world: "YearWorld", book: Book, tick: int, decided_at: int) -> bool:
    return world.troubled(tick - _early_us(book, tick) - MISSED_AFTER_US, decided_at)


def check_buffers(book: Book) -> None:
    """What overlapped under a policy that keeps the latest: a later one came due meanwhile. buffer_all keeps all."""
    for row in book.ranges:
        if row.skipped.reason is not SkipReason.OVERLAP or _closes(book, row):
            continue
        span = book.span_of(row.skipped.first_tick)
        overlap = policy_of(span.policy).get("overlap", "skip")
        assert overlap != "buffer_all", book.says(f"{row} was not kept by buffer_all")
        if overlap not in {"buffer_one", "cancel_running"}:
            continue
        contains = window_of(span.policy)
        kept = book.next_due(row.skipped.last_tick)
        while kept is not None and contains is not None and not contains(kept):
            kept = book.next_due(kept)
        if _was_moved(book, row):
            continue
        soon = kept is not None and kept - _early_us(book, row.skipped.last_tick) <= row.decided_at
        assert soon, book.says(f"{row}, and nothing is kept for after the run, under {overlap}; next is {kept}")


def _was_moved(book: Book, row: SkipRow) -> bool:
    """The run's verb moved the next one (`ctx.next_in`): that is the one which is kept."""
    at = book.index_of(row.skipped.last_tick)
    return (
        book.spans[at].until_at == row.skipped.last_tick
        and book.spans[at + 1].anchor != book.spans[at].anchor
        and any(
            each.report is not None and each.report.next_in_ms and each.report.ended_at <= row.decided_at
            for each in book.running_at(row.skipped.last_tick, row.decided_at)
        )
    )


def _distance_us(schedule: str, policy_text: str) -> int:
    policy = policy_of(policy_text)
    exempt = policy.get("overlap") in {"allow", "buffer_all"} or policy.get("on_missed") == "run_all"
    if not is_cron(schedule) or exempt:
        return 0
    fields = schedule.split()
    plain = (
        len(fields) == 5 or fields[0] == "0" or (len(fields) == 6 and len(fields[-1]) >= 4 and "/" not in fields[-1])
    )
    if len(fields) == 1:
        plain = not fields[0].endswith("s")
    return 60 * SECOND_US if plain else SECOND_US


def _earliest(row: StoredExecution, distance_us: int) -> int:
    return (row.claimed_at if row.claimed_at - row.run_at > SECOND_US else row.tick) + distance_us


def check_distances(book: Book) -> None:
    """The minimum interval between starts, within one schedule and policy."""
    for before, after in pairwise(book.of_ticks):
        at = book.index_of(after.tick)
        if book.index_of(before.tick) != at:
            continue
        distance_us = _distance_us(book.spans[at].schedule, book.spans[at].policy)
        if distance_us:
            earliest = _earliest(before, distance_us)
            assert after.claimed_at >= earliest, book.says(
                f"{brief(after)} started {earliest - after.claimed_at} us too soon"
            )


def check_cuts(world: "YearWorld", book: Book) -> None:
    """Under cancel_running, no run outlives the next tick for long, where runners and controllers are there."""
    for row in book.of_ticks:
        policy = book.policy_at(row.tick)
        following = book.next_due(row.tick)
        contains = window_of(book.span_of(row.tick).policy)
        while following is not None and contains is not None and not contains(following):
            following = book.next_due(following)
        if policy.get("overlap") != "cancel_running" or following is None:
            continue
        if book.index_of(following) != book.index_of(row.tick):
            continue
        ended = ended_at(row, book.now_us)
        late = ended - max(_next(book, following), row.claimed_at) > 10 * SECOND_US
        paused = any(pause.since <= ended and (pause.until or ended) >= row.claimed_at for pause in book.pauses)
        if late and not paused and not world.troubled(row.claimed_at, ended):
            raise AssertionError(book.says(f"{brief(row)} was not cut by {following}"))
