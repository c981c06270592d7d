"""What real processes say and do for an execution."""

from tests.proxies import burst
from tests.proxies.bounds import BURST, complaints


def test_statements_messages_and_calls_of_an_execution() -> None:
    assert complaints(BURST, burst.measure()) == []
