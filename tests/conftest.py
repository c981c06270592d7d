"""Fixtures that every test may use. Those of databases are explained in tests/support/databases.py."""

import contextlib
import gc
import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests import drawing, lanes, mixing
from tests.support import programs
from tests.support.databases import PostgresServer, running_server
from tests.support.server_logs import LOGS

# One place for the workers of this run: of devs that run side by side, commands find one, as for users. And another
# one for each run: else its commands would find the dev of another checkout.
if "PYTEST_XDIST_WORKER" not in os.environ:
    STATE = tempfile.TemporaryDirectory(prefix="cronring-tests-", ignore_cleanup_errors=True)  # to the end of the run
    os.environ["XDG_STATE_HOME"] = STATE.name
    os.environ["XDG_CONFIG_HOME"] = STATE.name  # nor the logins of whoever runs them

# A shell starts what it runs in the background with SIGINT ignored, and so would be every process of a test.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A change is judged by the same examples as the change before it; `make soak` draws others each time.
# How long examples take says more of the machine than of the test: hypothesis's deadline of 200 ms is of wall time, and
# in a fresh clone the first ones wait for its table of characters.
SLOW_IS_WELL = [HealthCheck.too_slow]
settings.register_profile(
    "same", derandomize=True, max_examples=drawing.examples(), deadline=None, suppress_health_check=SLOW_IS_WELL
)
settings.register_profile("drawn", deadline=None, suppress_health_check=SLOW_IS_WELL)
settings.load_profile("drawn" if drawing.DRAWS else "same")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    # None: others may have a reason
    return lanes.is_passed_over(collection_path, config.getoption("markexpr")) or None


@pytest.hookimpl(tryfirst=True)  # before pytest looks at -m
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        call = getattr(item, "callspec", None)
        parameters = () if call is None else call.params.values()
        if lanes.is_long(item.path) or lanes.is_of_an_older_server(item.path, parameters):
            item.add_marker("long")
    order = {file: place for place, file in enumerate(mixing.mixed(dict.fromkeys(item.path for item in items)))}
    items.sort(key=lambda item: order[item.path])


@pytest.hookimpl(optionalhook=True)  # where tests run in one process, no plugin knows it
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> mixing.TogetherScheduling | None:
    return mixing.TogetherScheduling(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_finish() -> None:
    # Ten thousand tests stay until the end. Each look for garbage would go through them: half a second each time. What
    # tests make is gone by its count of references, mostly: to look more seldom saves a twentieth of the CPU.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


@pytest.fixture(scope="session", autouse=True)
def forked_programs() -> Iterator[None]:
    with programs.forking(True):
        yield


@pytest.fixture(scope="module")
def fresh_programs() -> Iterator[None]:
    """Each of cronring's programs is begun anew. For tests that look at what an interpreter begins with."""
    with programs.forking(False):
        yield


@pytest.fixture(autouse=True)
def no_server_crashed() -> Iterator[None]:
    """A crash of PostgreSQL fails the test in which it is, whoever was connected. See tests/support/server_logs.py."""
    yield
    crashes = LOGS.crashes()
    assert not crashes, "PostgreSQL crashed:\n" + "\n".join(crashes)


@pytest.fixture(scope="session")
def postgres_servers() -> Iterator[Callable[[str], PostgresServer]]:
    """Servers by name ("postgres18", "postgres15"), each started when first asked for."""
    started: dict[str, PostgresServer] = {}
    with contextlib.ExitStack() as stack:

        def get(name: str) -> PostgresServer:
            if name not in started:
                started[name] = stack.enter_context(running_server(name))
            return started[name]

        yield get


@pytest.fixture
def postgres_name() -> str:
    """Which server `postgres` and `database_url` are of. Parametrise it to try others."""
    return "postgres18"


@pytest.fixture
def postgres(postgres_servers: Callable[[str], PostgresServer], postgres_name: str) -> PostgresServer:
    """The session's server. Don't stop it."""
    return postgres_servers(postgres_name)


@pytest.fixture
def database_url(postgres: PostgresServer) -> Iterator[str]:
    """A fresh, migrated database; dropped at the end, whoever is still connected."""
    name = postgres.create_database()
    yield postgres.url(name)
    postgres.drop_database(name)


@pytest.fixture(scope="module")
def module_database_url(postgres_servers: Callable[[str], PostgresServer]) -> Iterator[str]:
    """The same on PostgreSQL 18, for the tests of one file together: those that look at one long story."""
    postgres = postgres_servers("postgres18")
    name = postgres.create_database()
    yield postgres.url(name)
    postgres.drop_database(name)


@pytest.fixture
def empty_database_url(postgres: PostgresServer) -> Iterator[str]:
    """A fresh database without any table."""
    name = postgres.create_database(template="template1")
    yield postgres.url(name)
    postgres.drop_database(name)
