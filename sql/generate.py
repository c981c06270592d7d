"""Make `sql/parameters.py` from `sql/queries/*.sql` and what PostgreSQL says of each parameter: `make parameters`.

tests/conformance/test_parameters.py holds it fresh.
"""

import asyncio
from pathlib import Path
from typing import Final

import asyncpg

from cronring.sql.loader import Loaded, Parameter, loaded
from cronring.sql.records import Statement

PARAMETERS: Final = Path(__file__).with_name("parameters.py")
_HEAD: Final = '''"""A record for each statement of `sql/queries/*.sql`: made by `make parameters`, don't edit."""

from collections.abc import Sequence

from cronring.sql.records import Statement
'''
# As connections of the store take them: controller/store/connect.py, for one, has instants as int.
_TYPES: Final = {
    "bool": "bool", "bytea": "bytes", "int2": "int", "int4": "int", "int8": "int", "name": "str", "text": "str",
    "timestamptz": "int", "varchar": "str",
}  # fmt: skip


async def generate(url: str) -> str:
    """The module, by a migrated database. Raises KeyError for a type that stands not in `_TYPES`."""
    connection = await asyncpg.connect(url, server_settings={"search_path": "cronring"})
    try:
        records = [await _record(connection, name, found) for name, found in sorted(loaded().items())]
    finally:
        await connection.close()
    return "\n\n".join([_HEAD, *records])


async def _record(connection: "asyncpg.Connection[asyncpg.Record]", name: str, found: Loaded) -> str:
    if not found.parameters:  # not every one of these can be prepared: nor need it be
        return f"class {name}(Statement): ...\n"
    types = (await connection.prepare(found.text)).get_parameters()
    pairs = zip(found.parameters, types, strict=True)
    fields = [f"    {each.name}: {_annotation(each, of.name)}\n" for each, of in pairs]
    return f"class {name}(Statement):\n{''.join(fields)}"


def _annotation(parameter: Parameter, of: str) -> str:
    element = _TYPES[of.removesuffix("[]")]
    if parameter.mark == "[?]":
        element += " | None"
    annotation = f"Sequence[{element}]" if of.endswith("[]") else element
    return f"{annotation} | None" if parameter.mark == "?" else annotation


def main() -> None:
    Statement.may_be_old = True
    from tests.support.databases import running_server  # noqa: PLC0415  # not installed: only a checkout has it

    with running_server("postgres18") as server:
        PARAMETERS.write_text(asyncio.run(generate(server.url(server.create_database()))), encoding="utf-8")


if __name__ == "__main__":
    main()
