"""The rows of rows_outages.py."""

from tests.faults.trying import long, short

test_short, test_long = short("outages"), long("outages")
