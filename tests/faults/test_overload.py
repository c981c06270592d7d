"""The rows of rows_overload.py."""

from tests.faults.trying import long, short

test_short, test_long = short("overload"), long("overload")
