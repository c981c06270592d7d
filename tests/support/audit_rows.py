"""Rows of the audit log for tests: written as a change is, and tampered with as by whoever owns the table."""

from typing import Final

from cronring.controller.store.connect import Connection
from cronring.schema.audit_chain import START, AuditRow, sealed

WRITE: Final = """
INSERT INTO cron_audit_log (refused, principal, method, origin, namespace, subject, before, after, remark,
                            controller_id)
VALUES ($1, $2, '/cronring.v1.Jobs/PauseJob', 'ipv4:127.0.0.1:7', $3, $4, $5, $6, 'for ada', 'c1')
RETURNING id
"""


async def write(
    connection: Connection, number: int, namespace: str = "billing", principal: str = "token:ci",
    refused: str | None = None,
) -> int:  # fmt: skip
    """A change of `job NAMESPACE/m.vNUMBER`, or a refusal: its id."""
    key, after = f"job {namespace}/m.v{number}", f'{{"paused": {number}, "note": "ä\U0001f600"}}'
    row_id: int = await connection.fetchval(WRITE, refused, principal, namespace, key, '{"paused": null}', after)
    return row_id


async def tamper(connection: Connection, *statements: str) -> None:
    """Whoever owns the table can do this: its triggers don't fire."""
    async with connection.transaction():
        await connection.execute("SET LOCAL session_replication_role = replica")
        for statement in statements:
            await connection.execute(statement)


def chain_of(count: int) -> list[AuditRow]:
    """Sealed rows, from 1 on."""
    rows = [
        AuditRow(
            number + 10, 1_790_000_000_000_000 + number, None, 1, "token:ci", "/cronring.v1.Jobs/PauseJob",
            "127.0.0.1", "billing", f"job billing/m.v{number}", None, '{"paused": "ä"}', "", "c1",
        )
        for number in range(1, count + 1)
    ]  # fmt: skip
    return sealed(START, rows)
