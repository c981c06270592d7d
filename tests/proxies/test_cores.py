"""What cores and codecs do for an execution, and what idle ones do."""

from tests.proxies import cores
from tests.proxies.bounds import CORES, IDLE, MEMBERSHIP, MEMORY, complaints


def test_calls_messages_and_bytes_of_an_execution() -> None:
    assert complaints(CORES, cores.calls()) == []


def test_memory_of_an_execution() -> None:
    assert complaints(MEMORY, cores.memory()) == []


def test_an_idle_cluster_asks_and_wakes_little() -> None:
    assert complaints(IDLE, cores.idle()) == []


def test_a_member_sends_as_many_packets_among_a_hundred_as_among_ten() -> None:
    measured = cores.membership()
    assert complaints(MEMBERSHIP, measured) == []
    assert measured["swim_packets_100"] <= 1.1 * measured["swim_packets_10"]
