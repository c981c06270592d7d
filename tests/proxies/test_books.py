"""What PostgreSQL does for an execution."""

from tests.proxies import books
from tests.proxies.bounds import BOOKS, complaints


def test_rows_blocks_and_wal_of_an_execution() -> None:
    assert complaints(BOOKS, books.measure()) == []
