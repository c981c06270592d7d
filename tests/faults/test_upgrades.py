"""The rows of rows_upgrades.py."""

from tests.faults.trying import long, short

test_short, test_long = short("upgrades"), long("upgrades")
