"""Callers that have no idempotency key left, as a day with 10,000 changes leaves them."""

import contextlib
from collections.abc import Iterator

from cronring.controller.ports.request_keys import KEYS_MAX
from cronring.controller.store.connect import connect
from tests.support.databases import run_coroutine


@contextlib.contextmanager
def keys_spent(database_url: str) -> Iterator[None]:
    """All who have used one have used all, until this is left."""
    used = run_coroutine(_executed(
        database_url,
        "INSERT INTO cron_request_keys (principal, method, key, request_hash, expires_at) "
        "SELECT principal, method, 'spent-' || number, request_hash, expires_at "
        "FROM (SELECT DISTINCT ON (principal) * FROM cron_request_keys) one, "
        f"generate_series(1, {KEYS_MAX}) number",
    ))  # fmt: skip
    assert int(used.split()[-1]) >= KEYS_MAX, "nobody has used a key before"
    yield
    run_coroutine(_executed(database_url, "DELETE FROM cron_request_keys WHERE key LIKE 'spent-%'"))


async def _executed(database_url: str, statement: str) -> str:
    connection = await connect(database_url, "cronring test keys")
    try:
        return str(await connection.execute(statement))
    finally:
        await connection.close()
