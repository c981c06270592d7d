"""A token that is made and used is nowhere: not in logs, not in lists of processes, not in PostgreSQL."""

import base64
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import psutil
import pytest

from cronring.schema.tokens import SecretKind, secret_hash
from tests.support.cluster import Cluster
from tests.support.databases import PostgresServer, run_coroutine, running_server
from tests.support.waiting import POLL_S, TIMEOUT_S

pytestmark = pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])
CLI = [sys.executable, "-m", "cronring.cli.main"]
# All that a server can be told to write, of those that went well and of those that failed.
TALKATIVE = ("log_statement = 'all'", "log_parameter_max_length = -1", "log_parameter_max_length_on_error = -1")


@pytest.fixture
def talkative(postgres_name: str) -> Iterator[PostgresServer]:
    with running_server(postgres_name) as server:
        for setting in TALKATIVE:
            server.execute(f"ALTER SYSTEM SET {setting}", "postgres")
        server.execute("SELECT pg_reload_conf()", "postgres")
        yield server


def forms(secret: str) -> list[bytes]:
    """What somebody could make it of: itself, its middle, and its bytes as PostgreSQL and others write them."""
    body = secret.split("_", 1)[1].rsplit("_", 1)[0]
    random = base64.urlsafe_b64decode(body + "=")
    return [body.encode(), random.hex().encode(), base64.b64encode(random)]


def command_lines(process: subprocess.Popen[str]) -> Iterator[str]:
    """As `ps` shows them, again and again until it has ended."""
    watched = psutil.Process(process.pid)
    while process.poll() is None:
        try:
            for each in (watched, *watched.children(recursive=True)):
                yield " ".join(each.cmdline())
        except psutil.Error:
            return
        time.sleep(POLL_S)


async def row_of_the_token(url: str, digest: bytes) -> str:
    """And a statement fails that has the hash for a parameter."""
    database = await asyncpg.connect(url, server_settings={"search_path": "cronring"})
    try:
        with pytest.raises(asyncpg.CheckViolationError):
            await database.execute("UPDATE cron_tokens SET secret_hash = $1 || '\\x00'::bytea", digest)
        row: str = await database.fetchval("SELECT t::text FROM cron_tokens t")
        return row
    finally:
        await database.close()


def test_it_is_in_no_log_no_list_of_processes_and_no_row(talkative: PostgresServer, tmp_path: Path) -> None:
    url, path = talkative.url(talkative.create_database()), tmp_path / "me.token"
    environment = dict(os.environ)
    create = [*CLI, "token", "create", "--name", "me", "--role", "admin", "--namespace", "*"]
    made = subprocess.run(
        [*create, "--secret-file", str(path), "--database-url", url], capture_output=True, text=True, check=True,
        timeout=TIMEOUT_S, env=environment,
    )  # fmt: skip
    secret = path.read_text().strip()
    digest = secret_hash(SecretKind.TOKEN, secret)
    with Cluster(url, tmp_path) as cluster:
        controller = cluster.start_controller("--log-level", "debug", "--log-format", "json")
        asking = subprocess.Popen(
            [*CLI, "whoami", "--controllers", controller.grpc, "--token-file", str(path)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment,
        )  # fmt: skip
        lines = "\n".join(command_lines(asking))
        said = asking.communicate(timeout=TIMEOUT_S)[0]
        log = controller.log.read_bytes()
    assert "whoami" in lines
    row = run_coroutine(row_of_the_token(url, digest))
    postgres = talkative.log.read_bytes()
    assert digest.hex().encode() in postgres, "it writes all parameters"
    for where in (postgres, log, *map(str.encode, (made.stderr, made.stdout, said, row, lines))):
        for form in forms(secret):
            assert form not in where
