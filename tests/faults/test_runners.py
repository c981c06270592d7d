"""The rows of rows_runners.py."""

from tests.faults.trying import long, short

test_short, test_long = short("runners"), long("runners")
