"""The rows of rows_postgres.py."""

from tests.faults.trying import long, short

test_short, test_long = short("postgres"), long("postgres")
