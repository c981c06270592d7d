"""A webhook's URL and secret are nowhere but at its receiver: with real controllers, certificates, keys and PostgreSQL.

Then the key is replaced, and a controller that had another one gets it: both within seconds, and nothing is restarted.
"""

import base64
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, Final

import asyncpg
import pytest

import cronring.webhooks
from cronring.client import AsyncClient
from cronring.client.doctor import ControllerReport, NoReport
from cronring.client.errors import Conflict
from cronring.controller.core.notify.delivering import make_secret
from cronring.trust.envelopes import PLAIN, Envelope
from cronring.trust.keyfile import make_key, write_keys
from tests.integration.operations.test_secrets_stay_secret import command_lines, talkative
from tests.support.cluster import Process, free_port
from tests.support.databases import PostgresServer, run_coroutine
from tests.support.secured import SecuredCluster
from tests.support.waiting import TIMEOUT_S, wait_until

__all__ = ["talkative"]  # the fixture
SECRET: Final = make_secret(b"0123456789-xyzzy-9876543210-none")
PATH: Final = "plughplughplugh"
QUERY: Final = "token=frotzfrotzfrotz"
SECRETS: Final = (
    SECRET.removeprefix("whsec_").encode(), b"0123456789-xyzzy-9876543210-none", PATH.encode(), QUERY.encode(),
)  # fmt: skip
TALKING: Final = ("--log-level", "debug", "--log-format", "json")
CLI: Final = [sys.executable, "-m", "cronring.cli.main"]


def forms(secret: bytes) -> set[bytes]:
    """Itself, and as hex and base64 have it, wherever it stands in what was encoded."""
    encoded = {secret, secret.hex().encode(), secret.hex().upper().encode()}
    for shift in range(3):
        middle = base64.b64encode(b"\0" * shift + secret)[4:-4]
        encoded |= {middle, middle.replace(b"+", b"-").replace(b"/", b"_")}
    return encoded


def found_in(text: bytes, *secrets: bytes) -> list[bytes]:
    return [form for secret in secrets for form in sorted(forms(secret)) if form in text]


class Receiver(threading.Thread):
    """Takes what is signed by SECRET, at the URL as it was given."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        events: list[Any] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                assert self.path == f"/{PATH}?{QUERY}"
                events.append(cronring.webhooks.verify(SECRET, dict(self.headers), body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Nobody reads it."""

        self.events = events
        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/{PATH}?{QUERY}"

    def run(self) -> None:
        self._server.serve_forever(0.05)

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self.join()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    made.start()
    yield made
    made.stop()


async def _rows(url: str) -> str:
    """Every row of every table, as text."""
    database = await asyncpg.connect(url, server_settings={"search_path": "cronring"})
    try:
        query = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'cronring'::regnamespace"
        tables = await database.fetch(query)
        rows = [await database.fetch(f'SELECT t::text FROM "{name}" t') for (name,) in tables]
        return "\n".join(row for of_table in rows for (row,) in of_table)
    finally:
        await database.close()


class Desk(SecuredCluster):
    """Remembers what its commands and calls were answered, and what `ps` has shown meanwhile."""

    def __init__(self, url: str, folder: Path) -> None:
        super().__init__(url, folder)
        self.said: list[str] = []
        self.lines: list[str] = []

    def type(self, at: Process, *words: str) -> str:
        with subprocess.Popen(
            [*CLI, *words, "--controllers", at.grpc], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL,
        ) as process:  # fmt: skip
            self.lines += command_lines(process)
            said = process.communicate(timeout=TIMEOUT_S)[0]
        assert process.returncode == 0, said
        self.said.append(said)
        return said

    def client_at(self, at: Process) -> AsyncClient:
        return AsyncClient([at.grpc], TIMEOUT_S, token=self.environment["CRONRING_TOKEN"], ca=self.pki.ca)

    def metrics(self, controller: Process) -> dict[str, str]:
        self.said.append(text := self.http(controller, "/metrics")[1])
        return dict(line.rsplit(" ", 1) for line in text.splitlines() if line.startswith("cronring_secrets_"))


@pytest.fixture
def desk(talkative: PostgresServer, tmp_path: Path, receiver: Receiver) -> Iterator[Desk]:
    """With files of what is secret."""
    away = f"http://127.0.0.1:{free_port()}/{PATH}?{QUERY}"
    for name, content in (("secret", SECRET), ("url", receiver.url), ("away", away)):
        (tmp_path / name).write_text(content)
    desk = Desk(talkative.url(talkative.create_database()), tmp_path)
    with desk:
        desk.let_in()
        yield desk


@pytest.mark.parametrize("postgres_name", ["postgres18"])
def test_they_are_nowhere_and_their_key_is_replaced(desk: Desk, talkative: PostgresServer, receiver: Receiver) -> None:
    file, another = desk.folder / "secrets.key", desk.folder / "other.key"
    old, new, other = keys = make_key(), make_key(), make_key()
    write_keys(file, [old])
    write_keys(another, [other])
    one, two = (desk.start_controller("--secrets-key", str(each), *TALKING) for each in (file, another))
    desk.type(one, "webhook", "add", "pager", "@url", "--webhook-secret", "@secret")
    desk.type(one, "webhook", "show", "pager")
    run_coroutine(use(desk, one))
    assert [event["type"] for event in receiver.events] == ["webhook.test"]
    run_coroutine(locked(desk, two, old.key_id))

    write_keys(file, [new, old])
    write_keys(another, [new, old])
    run_coroutine(wait_until(lambda: replaced(desk, one, two), "the key is not replaced", poll_s=0.5))
    rows = run_coroutine(_rows(desk.database_url))
    assert rows.count(f"cronring1${new.key_id}$") == 2
    run_coroutine(opened(desk, two, new.key_id))
    assert len(receiver.events) == 2

    everywhere = [talkative.log.read_bytes(), *(each.log.read_bytes() for each in desk.controllers)]
    everywhere += [rows.encode(), "\n".join(desk.said).encode(), "\n".join(desk.lines).encode()]
    assert f"cronring1${new.key_id}$".encode() in everywhere[0], "it writes all parameters"
    assert "webhook_not_answered" in everywhere[1].decode()
    assert "delivery_locked" not in everywhere[1].decode()
    assert any("@secret" in line for line in desk.lines)
    for where in everywhere:
        assert found_in(where, *SECRETS, *(key.key for key in keys)) == []


async def use(desk: Desk, at: Process) -> None:
    """Every call about webhooks."""
    async with desk.client_at(at) as client:
        webhooks = client.notifications
        added = await webhooks.add("away", (desk.folder / "away").read_text(), secret=SECRET)
        assert added.secret == SECRET
        failed = await webhooks.test("away")
        assert failed.error.startswith("no answer")
        answers = [
            added, failed, await webhooks.test("pager"), await webhooks.list(), await webhooks.get("pager"),
            await webhooks.set_enabled("away", enabled=False, reason="why"),
            await webhooks.set_enabled("away", enabled=True), await webhooks.deliveries("pager"),
            await webhooks.redeliver("pager"),
        ]  # fmt: skip
        with pytest.raises(Conflict) as taken:
            await webhooks.add("away", (desk.folder / "away").read_text(), secret=SECRET)
    desk.said += map(repr, [*answers, taken.value])
    assert "origin='http://127.0.0.1:" in desk.said[-2 - len(answers) + 4]


async def locked(desk: Desk, at: Process, key_id: str) -> None:
    """Of a controller that lacks the key."""
    async with desk.client_at(at) as client:
        with pytest.raises(Conflict, match=f"encrypted by key {key_id}, which this controller doesn't have") as refused:
            await client.notifications.test("pager")
    desk.said.append(repr(refused.value))


def replaced(desk: Desk, *controllers: Process) -> bool:
    """Each reads its file again within 10 s."""
    wanted = {
        "cronring_secrets_stored": "2.0",
        "cronring_secrets_on_other_keys": "0.0",
        "cronring_secrets_locked": "0.0",
    }
    return all(desk.metrics(each) == wanted for each in controllers)


async def opened(desk: Desk, at: Process, key_id: str) -> None:
    """By one that lacked the key, and nothing is left to complain of."""
    async with desk.client_at(at) as client:
        assert (await client.notifications.test("pager")).delivered
        reports = await client.doctor.controllers([each.grpc for each in desk.controllers])
        findings = await client.doctor.database(at.grpc)
    assert not isinstance(findings, NoReport)
    assert [each.seen for each in findings if each.check == "secrets"] == [f"2 by key {key_id}"]
    assert [(each.secrets_key, each.secrets_problem) for each in reports if isinstance(each, ControllerReport)] == [
        (key_id, "")
    ] * 2
    desk.said += map(repr, [reports, findings])


def test_what_is_looked_for_would_be_found() -> None:
    url = f"http://127.0.0.1:1/{PATH}?{QUERY}"
    plain = Envelope(PLAIN, b"", json.dumps([url, SECRET]).encode()).text().encode()
    assert [len(found_in(plain, each)) > 0 for each in SECRETS] == [True, False, True, True]
    assert found_in(SECRET.encode(), *SECRETS)
    assert found_in(SECRETS[1].hex().encode(), *SECRETS)
