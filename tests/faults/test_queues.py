"""The rows of rows_queues.py."""

from tests.faults.trying import long, short

test_short, test_long = short("queues"), long("queues")
