"""What is encrypted in a real PostgreSQL: it is rotated by many at once, while deliveries go on, and none is lost."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cronring.controller.core.notify.delivering import make_secret
from cronring.controller.core.notify.endpoint import Endpoint, origin
from cronring.controller.errors import SecretLocked
from cronring.controller.ports.secrets import EncryptedRow
from cronring.controller.ports.webhooks import DeliveryFilter, NewWebhook
from cronring.controller.runtime import webhooks as delivering
from cronring.controller.runtime.clock import SystemClock
from cronring.controller.runtime.log import Log
from cronring.controller.runtime.metrics import Metrics
from cronring.controller.runtime.webhooks import Deliverer, HttpPosting, Interest, WebhookFigures
from cronring.controller.services.reencrypting import Reencrypted, reencrypt
from cronring.controller.services.vault import Vault, context_of_webhook, encrypt_endpoint, open_endpoint
from cronring.controller.store.pool import Database
from cronring.controller.store.secrets import PostgresEncryptedRows
from cronring.controller.store.webhooks import PostgresOutbox, PostgresWebhooks
from cronring.trust.keyfile import KeyFile, WrappingKey, make_key, write_keys
from tests.integration.notifications.receiver import Receiver
from tests.support.keys import file_vault, key_file
from tests.support.waiting import wait_until

SECRET = make_secret(b"s" * 32)
FIRST, SECOND = make_key(), make_key()
PLAIN = Vault([], plain_allowed=True)


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    database = await Database.open(database_url, "cronring test")
    yield database
    await database.close()


async def add(database: Database, vault: Vault, name: str, url: str = "http://127.0.0.1:1/xyzzy") -> None:
    encrypted = await encrypt_endpoint(vault, name, Endpoint(url, SECRET))
    await PostgresWebhooks(database).add(NewWebhook(name, origin(url), encrypted, (), (), "", "", "", {}, "ann"))


async def test_rows_are_counted_by_key_and_replaced_once(database: Database, tmp_path: Path) -> None:
    rows, vault = PostgresEncryptedRows(database), file_vault(key_file(tmp_path / "key", FIRST))
    for number in range(5):
        await add(database, vault, f"w{number}")
    await add(database, PLAIN, "plain")
    assert await rows.by_key() == {FIRST.key_id: 5, "plain": 1}
    page = await rows.encrypted_otherwise("plain", 0, 3)
    rest = await rows.encrypted_otherwise("plain", page[-1].row_id, 3)
    assert [row.context for row in (*page, *rest)] == [context_of_webhook(f"w{number}") for number in range(5)]
    row = page[0]
    assert await rows.replace(row, "cronring1$a$$")
    assert not await rows.replace(row, "cronring1$b$$"), "it is no longer what was read"
    assert await rows.by_key() == {"a": 1, FIRST.key_id: 4, "plain": 1}


async def test_many_encrypt_anew_at_once_and_one_that_stops_midway_is_gone_on_with(
    database: Database, tmp_path: Path
) -> None:
    old = file_vault(key_file(tmp_path / "old", FIRST))
    for number in range(150):  # more than a page
        await add(database, old if number % 2 else PLAIN, f"w{number}")
    vault = file_vault(key_file(tmp_path / "new", SECOND, FIRST))

    class Dying(PostgresEncryptedRows):
        left = 7

        async def replace(self, row: EncryptedRow, encrypted: str) -> bool:
            self.left -= 1
            if self.left < 0:
                raise ConnectionError
            return await super().replace(row, encrypted)

    with pytest.raises(ConnectionError):
        await reencrypt(Dying(database), vault)
    assert (await PostgresEncryptedRows(database).by_key())[SECOND.key_id] == 7
    seen = await asyncio.gather(*(reencrypt(PostgresEncryptedRows(database), vault) for _ in range(4)))
    assert set(seen) == {Reencrypted(SECOND.key_id, 150, 0, 0, "")}
    webhooks = PostgresWebhooks(database)
    alone = file_vault(key_file(tmp_path / "alone", SECOND))
    for number in range(150):
        at = await open_endpoint(alone, f"w{number}", (await webhooks.addressee(f"w{number}")).encrypted)
        assert at == Endpoint("http://127.0.0.1:1/xyzzy", SECRET)


async def test_what_does_not_open_is_counted_and_left_as_it_is(database: Database, tmp_path: Path) -> None:
    rows, old = PostgresEncryptedRows(database), file_vault(key_file(tmp_path / "old", FIRST))
    for name in ("a", "b", "c"):
        await add(database, old, name)
    webhooks = PostgresWebhooks(database)
    moved = (await webhooks.addressee("a")).encrypted
    (last,) = [row for row in await rows.encrypted_otherwise("", 0, 9) if row.context == context_of_webhook("c")]
    await rows.replace(last, moved)
    seen = await reencrypt(rows, file_vault(key_file(tmp_path / "both", SECOND, FIRST)))
    assert seen[:4] == (SECOND.key_id, 3, 1, 1)
    assert "cron_webhooks/c" in seen.trouble
    assert "moved it here from another row" in seen.trouble
    third = make_key()
    seen = await reencrypt(rows, file_vault(key_file(tmp_path / "third", third)))
    assert seen[:4] == (third.key_id, 3, 3, 3)
    assert "which this controller doesn't have" in seen.trouble
    assert (await webhooks.addressee("c")).encrypted == moved


class Controller:
    """What of one delivers, with a key file of its own."""

    def __init__(self, database: Database, name: str, file: KeyFile) -> None:
        self.file, self.vault = file, file_vault(file)
        self.rows, self.figures = PostgresEncryptedRows(database), WebhookFigures()
        log = Log(SystemClock(), Metrics())
        self.posting = HttpPosting(log)
        self.wake = asyncio.Event()
        outbox = PostgresOutbox(database, name)
        self._deliverer = Deliverer(
            outbox, self.vault, self.posting, Interest(), self.wake, self.figures, log
        )  # fmt: skip
        self._task = asyncio.get_running_loop().create_task(self._deliverer.deliver())

    def give(self, *keys: WrappingKey) -> None:
        write_keys(self.file.file, keys)
        assert self.file.reload()

    async def reencrypt(self) -> Reencrypted:
        return await reencrypt(self.rows, self.vault)

    async def stop(self) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        await self.posting.close()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    made = Receiver()
    made.secrets = {"pager": SECRET}
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def controllers(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[list[Controller]]:
    monkeypatch.setattr(delivering, "LOCKED_S", 0.2)
    monkeypatch.setattr(delivering, "LOCKED_WAIT_MS", 50)
    made = [Controller(database, name, key_file(tmp_path / name, FIRST)) for name in ("c1", "c2")]
    yield made
    for each in made:
        await each.stop()


async def put(database: Database, first: int, count: int) -> None:
    async with database.transaction("test") as transaction:
        await transaction._connection.executemany(
            "INSERT INTO cron_deliveries (webhook_id, event_id, event, body) SELECT id, $1, 'test', $2 "
            "FROM cron_webhooks WHERE name = 'pager'",
            [
                (f"e{number}", json.dumps({"id": f"e{number}", "type": "webhook.test", "timestamp": "", "data": {}}))
                for number in range(first, first + count)
            ],
        )


async def test_a_rotation_under_load_loses_no_delivery(
    database: Database, receiver: Receiver, controllers: list[Controller]
) -> None:
    """The order of steps that docs/security.md has, with deliveries under way at each of them."""
    one, two = controllers
    await add(database, one.vault, "pager", receiver.url("pager"))
    steps = (
        lambda: None,
        lambda: one.give(FIRST, SECOND),
        lambda: two.give(FIRST, SECOND),
        lambda: one.give(SECOND, FIRST),  # now they encrypt by other keys
        lambda: two.give(SECOND, FIRST),
        lambda: one.give(SECOND),
        lambda: two.give(SECOND),
    )
    for number, step in enumerate(steps):
        await put(database, 40 * number, 40)
        step()
        await asyncio.gather(one.reencrypt(), two.reencrypt())
        if number == 4:
            await one.reencrypt()
            assert (await two.reencrypt())[:4] == (SECOND.key_id, 1, 0, 0), "the old key may go"
    await wait_until(lambda: len({event["id"] for event in receiver.events}) == 280, "some never arrive")
    assert one.figures.tries["locked"] == two.figures.tries["locked"] == 0
    assert len(await PostgresWebhooks(database).list()) == 1


async def test_deliveries_wait_for_a_key_that_is_missing(
    database: Database, receiver: Receiver, controllers: list[Controller]
) -> None:
    one, two = controllers
    await add(database, one.vault, "pager", receiver.url("pager"))
    one.give(SECOND)
    await put(database, 0, 40)
    await wait_until(lambda: len(receiver.events) == 40, "the one with the key delivers all")
    two.give(SECOND)
    await put(database, 40, 3)
    webhooks = PostgresWebhooks(database)

    async def said() -> bool:
        rows = [row for row in await webhooks.deliveries(DeliveryFilter("pager"), 0, 3) if row.attempts > 1]
        return len(rows) == 3 and all(
            row.state == "waiting"
            and f"encrypted by key {FIRST.key_id}, which this controller doesn't have" in row.last_error
            for row in rows
        )

    await wait_until(said, "nobody says why they wait")
    assert len(receiver.events) == 40
    with pytest.raises(SecretLocked):
        await open_endpoint(two.vault, "pager", (await webhooks.addressee("pager")).encrypted)
    two.give(SECOND, FIRST)
    await wait_until(
        lambda: len({event["id"] for event in receiver.events}) == 43, "the key is back, and nothing comes"
    )
