"""The rows of rows_processes.py."""

from tests.faults.trying import long, short

test_short, test_long = short("processes"), long("processes")
