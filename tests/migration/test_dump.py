"""Whoever reads sql/schema.sql sees what `cronring migrate` makes."""

from tests.migration.dump import FILE, dump
from tests.support.databases import TEMPLATE, PostgresServer


def test_the_committed_schema_is_that_of_a_migrated_database(postgres: PostgresServer) -> None:
    assert dump(postgres, TEMPLATE) == FILE.read_text(), "run `make schema`, and commit sql/schema.sql"
