"""The rows of rows_liars.py."""

from tests.faults.trying import long, short

test_short, test_long = short("liars"), long("liars")
