"""The rows of rows_clocks.py."""

from tests.faults.trying import long, short

test_short, test_long = short("clocks"), long("clocks")
