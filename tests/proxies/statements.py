"""A server that counts: its log names every statement, its statistics every row, block and byte of WAL.

Nothing of ours takes part in the counting, so that it counts whatever the store makes of a claim.
"""

import contextlib
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

import asyncpg

from cronring import sql
from tests.support.databases import PostgresServer, running_server

ENTRY, SAYS = "\x01", "\x02"  # what no statement holds
_STATEMENT: Final = re.compile(r"LOG:  (?:statement|execute [^:]+): (.*)\Z", re.DOTALL)
_PARTITION: Final = re.compile(r"cron_executions_\w+ e\b")  # of which an end names the one that it is in
_TRANSACTION: Final = {"BEGIN": 1, "COMMIT": -1, "ROLLBACK": -1}
COUNTED = """
SELECT CASE WHEN t.relname LIKE 'cron_executions%' THEN 'cron_executions' ELSE t.relname END AS name,
       sum(n_tup_ins)::bigint AS inserted, sum(n_tup_upd)::bigint AS updated,
       sum(n_tup_upd - n_tup_hot_upd)::bigint AS moved,
       sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::bigint AS read,
       sum(coalesce(heap_blks_hit, 0) + coalesce(heap_blks_read, 0) + coalesce(idx_blks_hit, 0)
           + coalesce(idx_blks_read, 0))::bigint AS buffers
FROM pg_stat_user_tables t JOIN pg_statio_user_tables USING (relid) GROUP BY 1
"""


class Said(NamedTuple):
    """A statement: who ran it, its name in `sql/` (or how it begins), and whether it was a transaction by itself."""

    application: str
    name: str
    commits: bool


class Tables(NamedTuple):
    """What has been counted until now: bytes of WAL, and by table what COUNTED names."""

    wal_bytes: int
    tables: dict[str, Counter[str]]

    def since(self, before: "Tables") -> "Tables":
        nothing: Counter[str] = Counter()
        tables = {
            name: Counter({what: count - before.tables.get(name, nothing)[what] for what, count in counts.items()})
            for name, counts in self.tables.items()
        }
        return Tables(self.wal_bytes - before.wal_bytes, tables)

    def total(self, what: str) -> int:
        return sum(counts[what] for counts in self.tables.values())


class CountingServer:
    """PostgreSQL 18 with every statement in its log, and nothing that comes by itself. No full pages in its WAL."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._names = {" ".join(text.split()): name for name, text in sql.statements().items()}
        server.settings |= {
            "autovacuum": "off",
            "log_statement": "all",
            "log_parameter_max_length": "0",
            "log_line_prefix": f"{ENTRY}%a{SAYS}%p{SAYS}",
        }
        server.stop()
        server.start()

    def new_database(self) -> str:
        return self._server.url(self._server.create_database())

    def mark(self) -> int:
        """Where its log ends now."""
        return self._server.log.stat().st_size

    def said(self, begins: int, ends: int) -> list[Said]:
        """The statements between two marks."""
        with self._server.log.open("rb") as log:
            log.seek(begins)
            text = log.read(ends - begins).decode(errors="replace")
        found = []
        inside: Counter[str] = Counter()
        for entry in text.split(ENTRY)[1:]:
            application, pid, message = entry.split(SAYS, 2)
            matched = _STATEMENT.match(message)
            if matched is None:
                continue
            bare = _PARTITION.sub("cron_executions e", " ".join(matched[1].split()))
            step = _TRANSACTION.get(bare.upper().rstrip(";").partition(" ")[0], 0)
            inside[pid] += step
            name = "transaction" if step else self._names.get(bare, bare[:60])
            found.append(Said(application, name, commits=inside[pid] == 0))
        return found


@contextlib.contextmanager
def counting_server() -> Iterator[CountingServer]:
    with running_server("postgres18") as server:
        yield CountingServer(server)


async def counted(connection: asyncpg.Connection, *others: asyncpg.Connection) -> Tables:
    """So far; of those sessions, everything. Others tell what they did when they end, or are idle for ten seconds."""
    for each in (*others, connection):
        await each.execute("SELECT pg_stat_force_next_flush()")
    await connection.execute("SELECT pg_stat_clear_snapshot()")
    wal = await connection.fetchval("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint")
    records = await connection.fetch(COUNTED)
    tables = {record["name"]: Counter(dict(list(record.items())[1:])) for record in records}
    return Tables(wal, tables)
