"""sql/schema.sql, the tables after all migrations: `make schema` writes it, and a test here holds it fresh.

It is what pg_dump says. Left out are its comments, its settings, and partitions, whose names and bounds are dates.
"""

import re
from pathlib import Path
from typing import Final

from tests.support.databases import TEMPLATE, PostgresServer, running_server

FILE: Final = Path(__file__).resolve().parents[2] / "sql" / "schema.sql"
_HEAD: Final = """\
-- The tables after all migrations, as pg_dump says: written by `make schema`, held fresh by tests/migration. Why they
-- are so is said in sql/migrations. Not here: partitions of cron_executions, and the few rows that migrations insert.

"""
_NOISE: Final = re.compile(r"(--|\\|SET |SELECT pg_catalog\.set_config).*")


def dump(server: PostgresServer, database: str) -> str:
    """The text of sql/schema.sql, by a migrated database on PostgreSQL 18."""
    text = server.run(
        "pg_dump", f"--dbname={server.url(database)}", "--schema-only", "--schema=cronring", "--no-owner",
        "--exclude-table=cronring.cron_executions_*",
    )  # fmt: skip
    lines = "\n".join(line for line in text.splitlines() if not _NOISE.match(line))
    return _HEAD + re.sub(r"\n{3,}", "\n\n", lines).strip() + "\n"


if __name__ == "__main__":
    with running_server("postgres18") as server:
        FILE.write_text(dump(server, TEMPLATE))
