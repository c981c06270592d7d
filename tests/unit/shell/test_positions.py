"""Where a watch has come to: which ids are missing, in gaps, and what a token holds of it."""

import random
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronring.controller.store import changes
from cronring.controller.store.changes import (
    GAPS_MAX,
    LATEST,
    OPEN_FOR_US,
    ExecutionPosition,
    Gap,
    Position,
    SeenRow,
    Stream,
    beginning,
    decode_position,
    encode_position,
)
from tests.support.costs import cpu_s

IDS = st.integers(1, 2**40)
TICKS = st.integers(0, LATEST)
GAPS = st.builds(lambda first, length, until: Gap(first, first + length, until), IDS, st.integers(0, 2**40), IDS)
STREAMS = st.builds(
    Stream, IDS, st.frozensets(IDS, max_size=30), st.lists(GAPS, max_size=5, unique=True).map(
        lambda missing: tuple(sorted(missing))), TICKS, TICKS
)  # fmt: skip
CHANGES = st.frozensets(st.tuples(IDS, IDS), max_size=5)
POSITIONS = st.one_of(
    st.builds(ExecutionPosition, IDS, STREAMS), st.builds(Position, IDS, STREAMS, STREAMS, CHANGES, CHANGES)
)


def rows(*ids: int) -> list[SeenRow]:
    return [SeenRow(row_id, row_id, True) for row_id in ids]


@given(POSITIONS)
def test_a_packed_position_is_that_position(position: Position | ExecutionPosition) -> None:
    assert decode_position(encode_position(position)) == position


@given(st.binary(max_size=60))
def test_nothing_else_is_a_position(packed: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  what it says is for nobody
        decode_position(packed)


def test_many_running_executions_are_packed_small() -> None:
    running = frozenset(range(10**9, 10**9 + 20_000, 2))
    assert len(encode_position(ExecutionPosition(10**15, Stream(10**9 + 20_000, running, ())))) < 1_000


def test_what_a_stream_has_told() -> None:
    stream, told = beginning(0, []).after([SeenRow(1, 1, True), SeenRow(2, 2, False), SeenRow(4, 4, True)], 0)
    assert told == [1, 2, 4]
    assert stream.has_told(1, ended=True)
    assert stream.has_told(2, ended=False)
    assert not stream.has_told(2, ended=True)
    assert not stream.has_told(3, ended=False), "it may still be committed"
    assert not stream.has_told(5, ended=False)


def test_what_is_missing_is_a_gap_until_it_comes_or_its_time_is_over() -> None:
    stream, _ = beginning(0, []).after(rows(1, 10), 0)
    assert stream.missing == (Gap(2, 9, OPEN_FOR_US),)
    stream, told = stream.after(rows(2, 5, 14), 1)
    assert told == [2, 5, 14]
    assert stream.missing == (Gap(3, 4, OPEN_FOR_US), Gap(6, 9, OPEN_FOR_US), Gap(11, 13, OPEN_FOR_US + 1))
    stream, told = stream.after(rows(9), OPEN_FOR_US)
    assert told == [9]
    assert stream.missing == (Gap(11, 13, OPEN_FOR_US + 1),)


@given(st.data())
def test_a_stream_knows_each_id_as_a_set_would(data: st.DataObject) -> None:
    stream, seen = beginning(0, []), set[int]()
    for now in range(data.draw(st.integers(1, 6))):
        fresh = data.draw(st.frozensets(st.integers(1, 60))) - seen
        stream, told = stream.after(rows(*fresh), now)
        assert set(told) == fresh
        seen |= fresh
        missing = {row_id for gap in stream.missing for row_id in range(gap.first, gap.last + 1)}
        assert missing == set(range(1, stream.highest + 1)) - seen
        assert all(stream.has_told(row_id, ended=True) == (row_id in seen) for row_id in range(1, 62))


@given(st.data())
def test_a_part_that_was_told_is_left_out_of_what_comes_next_and_nothing_else_is(data: st.DataObject) -> None:
    ids = st.frozensets(st.integers(1, 40))
    before = data.draw(st.dictionaries(st.integers(1, 40), st.booleans()), "before")  # ids, and whether they have ended
    after = {row_id: True for row_id, ended in before.items() if ended or data.draw(st.booleans())}
    after = {**before, **after, **dict.fromkeys(data.draw(ids) - set(before), data.draw(st.booleans()))}
    begun, _ = beginning(0, []).after(table(before), 0)
    rows = answer(begun, after)
    _, told = begun.after(rows, 1)
    part = [row for row in rows if row.row_id in told][: data.draw(st.integers(0, len(told)))]
    reached = decoded(begun.having_told(part, 1))
    at_once, rest = reached.after(answer(reached, after), 2)
    assert rest == told[len(part) :]
    assert at_once == begun.after(rows, 1)[0]._replace(missing=at_once.missing)
    assert all(
        at_once.has_told(row_id, ended=ended) for row_id, ended in after.items()
    ), "what comes later is told of once"  # fmt: skip


def table(rows: dict[int, bool]) -> list[SeenRow]:
    return [SeenRow(row_id, row_id, ended, row_id * 10) for row_id, ended in sorted(rows.items())]


def answer(stream: Stream, rows: dict[int, bool]) -> list[SeenRow]:
    """As GetExecutionChanges has it."""
    gaps = list(zip(*stream.gaps(), strict=True))
    return [
        row for row in table(rows)
        if row.row_id > stream.highest
        or (row.row_id in stream.unfinished and stream.first_tick <= (row.tick or 0) <= stream.last_tick)
        or any(first <= row.row_id <= last for first, last in gaps)
    ]  # fmt: skip


def decoded(stream: Stream) -> Stream:
    position = decode_position(encode_position(ExecutionPosition(1, stream)))
    assert isinstance(position, ExecutionPosition)
    return position.executions


def test_a_thousand_million_missing_ids_cost_what_one_does() -> None:
    """A restore moves the sequences on by so many (docs/operations.md)."""

    def restored() -> tuple[Stream, bytes]:
        stream, told = beginning(10**6, []).after(rows(10**6, 10**9 + 10**6), 0)
        assert told == [10**6, 10**9 + 10**6]
        stream, _ = stream.after(rows(10**9 + 10**6 + 1), 1)
        return stream, encode_position(ExecutionPosition(0, stream))

    tracemalloc.start()
    stream, packed = restored()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert decode_position(packed) == ExecutionPosition(0, stream)
    assert stream.missing[-1] == Gap(10**6 + 1, 10**9 + 10**6 - 1, OPEN_FOR_US)
    assert (peak < 1_000_000, len(packed) < 200) == (True, True), (peak, len(packed))
    assert cpu_s(restored) < 0.05


def test_too_many_gaps_are_joined_where_they_lie_closest_and_nothing_is_left_out() -> None:
    ids = sorted(random.Random(7).sample(range(2, 10**6), 20_000))
    stream, _ = beginning(0, []).after(rows(*ids), 0)
    assert len(stream.missing) == GAPS_MAX
    assert list(stream.missing) == sorted(stream.missing)
    unseen = set(range(1, ids[-1])).difference(ids)
    assert not any(stream.has_told(row_id, ended=True) for row_id in random.Random(7).sample(sorted(unseen), 1_000))
    late = next(iter(unseen))
    _, told = stream.after(rows(late), 1)
    assert told == [late]


def test_what_lies_between_two_gaps_that_were_joined_is_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "GAPS_MAX", 2)
    stream, _ = beginning(0, []).after(rows(1, 3, 100, 200), 0)
    assert stream.missing == (Gap(2, 99, OPEN_FOR_US), Gap(101, 199, OPEN_FOR_US))
    stream, _ = beginning(0, []).after(rows(1, 3, 5, 100), 0)
    assert stream.missing == (Gap(2, 4, OPEN_FOR_US), Gap(6, 99, OPEN_FOR_US))
    _, told = stream.after(rows(3), 1)
    assert told == [3]
