"""What reads the test servers' logs sees a crash, and only a crash."""

import os
import signal

import asyncpg
import pytest

from tests.support.databases import running_server
from tests.support.server_faults import kill_backend, wait_until_it_answers
from tests.support.server_logs import LOGS

pytestmark = pytest.mark.parametrize("name", ["postgres18", "postgres15"])


async def test_a_backend_that_dies_is_seen_once_and_one_that_is_meant_to_is_not(name: str) -> None:
    with running_server(name) as server:
        victim = await asyncpg.connect(server.url())
        with pytest.raises(asyncpg.PostgresError):
            await victim.execute("SELECT 1/0")
        server.stop()
        server.start()
        assert LOGS.crashes() == [], "an error, and a shutdown, are none"
        victim = await asyncpg.connect(server.url())
        os.kill(await victim.fetchval("SELECT pg_backend_pid()"), signal.SIGSEGV)
        with pytest.raises((asyncpg.PostgresError, OSError)):
            await victim.execute("SELECT pg_sleep(9)")
        victim.terminate()
        wait_until_it_answers(server.url())
        assert any("was terminated by signal 11" in line for line in LOGS.crashes())
        assert LOGS.crashes() == []
        victim = await asyncpg.connect(server.url("template1"))
        kill_backend(server, "template1")
        victim.terminate()
        wait_until_it_answers(server.url())
        assert LOGS.crashes() == []
    assert LOGS.crashes() == []
