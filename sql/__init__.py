"""Numbered migrations and named queries: the only place where SQL stands. Pure data, loaded once."""

import functools
import hashlib
import re
from importlib import resources
from typing import Final, NamedTuple

from cronring.sql.loader import loaded

_MIGRATION: Final = re.compile(r"^(\d{4})_(\w+)\.sql$")
_WORKS_WITH: Final = re.compile(r"^-- works with: (\d+)$", re.MULTILINE)


class Migration(NamedTuple):
    """One numbered script. `checksum` is the hex SHA-256 of its text.

    `works_with`: programs that know of that version's schema, or of a later one, go on working when it is applied (it
    only expands: a release takes nothing away that the one before it uses). None: only those that know of it itself.
    """

    version: int
    name: str
    checksum: str
    script: str
    works_with: int | None


@functools.cache
def statements() -> dict[str, str]:
    """The text of every statement of `sql/queries/*.sql`, as PostgreSQL takes it, by its `-- name:`."""
    return {name: found.text for name, found in loaded().items()}


def statement(name: str) -> str:
    """The statement of that name. Raises KeyError."""
    return statements()[name]


@functools.cache
def migrations() -> tuple[Migration, ...]:
    """All migrations in order. Raises ValueError when the numbers don't run 1, 2, 3..."""
    found = []
    for file in resources.files(__name__).joinpath("migrations").iterdir():
        matched = _MIGRATION.match(file.name)
        if matched is not None:
            script = file.read_text(encoding="utf-8")
            checksum = hashlib.sha256(script.encode()).hexdigest()
            declared = _WORKS_WITH.search(script)
            works_with = None if declared is None else int(declared[1])
            found.append(Migration(int(matched[1]), matched[2], checksum, script, works_with))
    found.sort()
    if [migration.version for migration in found] != list(range(1, len(found) + 1)):
        raise ValueError(f"migrations are not numbered 1 to n: {[migration.version for migration in found]}")
    return tuple(found)
