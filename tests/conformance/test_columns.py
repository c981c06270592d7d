"""Columns packed by us are the arrays that PostgreSQL takes them for, and come back as what they were."""

import random
from collections.abc import AsyncIterator, Sequence
from typing import Final

import pytest

from cronring.controller.errors import StoreError
from cronring.controller.store.columns import prepare_columns
from cronring.controller.store.connect import FIRST_US, LAST_US, Connection, connect
from cronring.controller.store.errors import translated

ENDS: Final = (-(2**63), -1, 0, 1, 2**63 - 1)
NARROW: Final = (-(2**31), -1, 0, 1, 2**31 - 1)
INSTANTS: Final = (FIRST_US, -1, 0, 946_684_800_000_000, LAST_US)
TEXTS: Final = ("", "a", "a b", 'quo"te', "{}", "NULL", "Zürich", "\U0001f552", "x" * 70_000)


@pytest.fixture
async def plain(database_url: str) -> AsyncIterator[Connection]:
    """asyncpg's own arrays."""
    connection = await connect(database_url, "cronring test")
    yield connection
    await connection.close()


@pytest.fixture
async def packed(database_url: str) -> AsyncIterator[Connection]:
    connection = await connect(database_url, "cronring test")
    prepare_columns(connection)
    yield connection
    await connection.close()


def drawn(among: Sequence[object]) -> list[list[object]]:
    """No element, each alone, all, and many of them, with and without nulls."""
    draw = random.Random(15)
    many = [[draw.choice([*among, None]) for _ in range(draw.randrange(600))] for _ in range(5)]
    return [[], [None], [None, None], list(among), [*among, None], *([one] for one in among), *many]


@pytest.mark.parametrize(
    ("array", "among"),
    [("bigint", ENDS), ("integer", NARROW), ("timestamptz", INSTANTS), ("text", TEXTS)],
    ids=lambda one: str(one)[:9],
)
async def test_a_column_is_what_asyncpg_makes_of_it(
    plain: Connection, packed: Connection, array: str, among: Sequence[object]
) -> None:
    for values in drawn(among):
        ours = await packed.fetchrow(f"SELECT $1::{array}[] AS same, array_out($1::{array}[]) AS text", values)
        theirs = await plain.fetchrow(f"SELECT $1::{array}[] AS same, array_out($1::{array}[]) AS text", values)
        assert ours is not None
        assert theirs is not None
        assert (ours["same"], ours["text"]) == (values, theirs["text"])
        assert ours["same"] == theirs["same"]


async def test_a_tuple_will_do(packed: Connection) -> None:
    assert await packed.fetchval("SELECT $1::bigint[]", (1, None, 3)) == [1, None, 3]
    assert await packed.fetchval("SELECT $1::text[]", ("a", "b", "a")) == ["a", "b", "a"]


async def test_an_instant_that_python_cannot_print_is_moved_to_one_that_it_can(packed: Connection) -> None:
    far = [2**63 - 1, None, -(2**63)]
    assert await packed.fetchval("SELECT $1::timestamptz[]", far) == [LAST_US, None, FIRST_US]
    assert await packed.fetchval("SELECT $1::timestamptz[]", [far[0], 0]) == [LAST_US, 0]


@pytest.mark.parametrize(
    ("array", "wrong"), [("bigint", [2**63]), ("integer", [2**31]), ("bigint", ["1"]), ("text", ["\ud800"])]
)
async def test_what_is_none_is_refused_by_its_argument(packed: Connection, array: str, wrong: list[object]) -> None:
    with pytest.raises(StoreError, match=r"\$1"), translated("a test"):
        await packed.fetchval(f"SELECT $1::{array}[]", wrong)
