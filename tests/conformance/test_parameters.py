"""The committed records are what PostgreSQL says of the statements today, and ids go as far as PostgreSQL's do."""

import re

from cronring.sql.generate import PARAMETERS, generate
from cronring.sql.loader import loaded
from tests.support.looking import look


async def test_records_are_fresh(database_url: str) -> None:
    assert PARAMETERS.read_text("utf-8") == await generate(database_url), "run `make parameters` and commit"


async def test_an_id_is_no_small_number(database_url: str) -> None:
    """Beside a literal PostgreSQL takes a parameter for an integer, and a large id would be a defect."""
    connection = await look(database_url)
    small = [
        f"{name}: {parameter.name}"
        for name, statement in loaded().items()
        if statement.parameters
        for parameter, kind in zip(
            statement.parameters, (await connection.prepare(statement.text)).get_parameters(), strict=True
        )
        if re.search(r"(^|_)ids?$", parameter.name) and kind.name.startswith(("int2", "int4"))
    ]
    await connection.close()
    assert small == []
