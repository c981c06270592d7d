"""The rows of rows_patroni.py: even the short forms take minutes."""

from tests.faults.trying import long

test_long = long("patroni")
