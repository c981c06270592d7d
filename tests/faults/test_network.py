"""The rows of rows_network.py."""

from tests.faults.trying import long, short

test_short, test_long = short("network"), long("network")
