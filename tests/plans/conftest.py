"""Databases with 100,000 jobs: they are filled once for each server, and copied for each file of tests."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from tests.plans.test_plans import FILL
from tests.support.databases import PostgresServer


@pytest.fixture(scope="session")
def copies_of_filled(
    postgres_servers: Callable[[str], PostgresServer],
) -> Callable[..., AbstractContextManager[str]]:
    """By the server's name: the URL of a copy, in which `more` has been done. It is dropped at the end."""
    filled: dict[str, str] = {}

    @contextmanager
    def copy(name: str, *more: str) -> Iterator[str]:
        server = postgres_servers(name)
        if name not in filled:
            filled[name] = server.create_database()
            server.execute(FILL, filled[name])
        database = server.create_database(filled[name])
        for statement in more:
            server.execute(statement, database)
        yield server.url(database)
        server.drop_database(database)

    return copy
