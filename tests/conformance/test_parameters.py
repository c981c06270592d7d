"""The committed records are what PostgreSQL says of the statements today."""

from cronring.sql.generate import PARAMETERS, generate


async def test_records_are_fresh(database_url: str) -> None:
    assert PARAMETERS.read_text("utf-8") == await generate(database_url), "run `make parameters` and commit"
