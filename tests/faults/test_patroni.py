"""The rows of rows_patroni.py."""

from tests.faults.trying import long, short

test_short, test_long = short("patroni"), long("patroni")
