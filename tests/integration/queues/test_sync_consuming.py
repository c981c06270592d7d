"""`Client.consume`, without `await`, against a real controller: leases last while a handler blocks its thread."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from cronring.client import Client, ClientError, Invalid, Lease, SyncConsumer, SyncMessage
from tests.support.cluster import Cluster
from tests.support.waiting import until

SHORT = timedelta(seconds=1)


@pytest.fixture
def blocking(cluster: Cluster) -> Iterator[Client]:
    with Client([cluster.addresses]) as client:
        yield client


def ids(lease: Lease) -> list[int]:
    return [each.id for each in lease.messages]


def test_messages_are_done_or_fail_as_their_contexts_are_left(blocking: Client, queue: str) -> None:
    blocking.queues.set(queue, max_deliveries=1)
    for number in range(3):
        blocking.queues.put(queue, {"n": number}, "a")
    seen = []
    for message in blocking.consume(queue, consumer="c1", until_empty=True):
        with message:
            seen.append(message.value()["n"])
            if message.value()["n"] == 1:
                raise ValueError("one is wrong")
        assert (message.error is None) == (message.value()["n"] != 1)
    assert seen == [0, 1, 2]
    assert blocking.queues.messages(queue) == []
    (letter,) = blocking.queues.dead_letters(queue)
    assert (letter.payload, letter.error_type, letter.error_message) == ('{"n":1}', "ValueError", "one is wrong")


def test_the_lease_lasts_while_a_handler_blocks(blocking: Client, queue: str) -> None:
    blocking.queues.put(queue, 1)

    def extended() -> bool:
        (row,) = blocking.queues.messages(queue)
        assert row.leased_until is not None
        assert row.enqueued_at is not None
        return row.leased_until > row.enqueued_at + 4 * SHORT

    for message in blocking.consume(queue, consumer="c1", hold=SHORT, until_empty=True):
        with message:
            until("the lease is extended", extended)
            assert blocking.queues.take(queue, "other").messages == ()
        assert (message.error, message.lost, message.delivery) == (None, False, 1)
    assert blocking.queues.messages(queue) == []


def test_who_leaves_the_loop_gives_back_the_rest(cluster: Cluster, blocking: Client, queue: str) -> None:
    put = [blocking.queues.put(queue, number) for number in range(3)]
    for message in blocking.consume(queue, consumer="c1", hold=timedelta(hours=1)):
        with message:
            pass
        break
    lease = blocking.queues.take(queue, "c2", hold=SHORT)
    assert ids(lease) == put[1:]
    blocking.queues.release(lease)
    other = Client([cluster.addresses])
    held = iter(other.consume(queue, consumer="c1", hold=timedelta(hours=1)))  # as a traceback holds it
    with pytest.raises(KeyboardInterrupt), other, next(held):
        raise KeyboardInterrupt
    assert ids(blocking.queues.take(queue, "c2")) == put[1:], "the client has given them back, as it was closed"


def test_a_message_that_is_not_ours_any_more_is_told_to_be_lost(blocking: Client, queue: str) -> None:
    blocking.queues.put(queue, 1)
    blocking.queues.put(queue, 2)
    for message in blocking.consume(queue, consumer="c1", hold=SHORT, until_empty=True):
        with message:
            if message.value() == 1:
                blocking.queues.release(Lease(message.lease, "default", ()))
                other = blocking.queues.take(queue, "c2", hold=timedelta(hours=1))
                until("somebody says that it is lost", lambda: message.lost)  # noqa: B023 - called at once
                raise ValueError("nobody is told")
        assert (message.lost, message.error) == (True, None)
    assert [each.delivery for each in other.messages][:1] != []
    assert blocking.queues.finish(other, ids(other)) == dict.fromkeys(ids(other), "done")


def test_a_stop_ends_it_in_a_thread(blocking: Client, queue: str) -> None:
    consumer = blocking.consume(queue, consumer="c1")
    assert stopped_while_it_waits(blocking, queue, consumer, consumer.stop) == []
    stopped = blocking.consume(queue, consumer="c1")
    stopped.stop()
    blocking.queues.put(queue, 2)
    assert list(stopped) == [], "it was stopped before it began"


def test_a_stop_ends_it_in_a_handler_of_a_signal(blocking: Client, queue: str) -> None:
    consumer = blocking.consume(queue, consumer="c1")
    before = signal.signal(signal.SIGUSR1, lambda *_: consumer.stop())
    try:  # to the process, as Ctrl-C is
        assert stopped_while_it_waits(blocking, queue, consumer, lambda: os.kill(os.getpid(), signal.SIGUSR1)) == []
    finally:
        signal.signal(signal.SIGUSR1, before)


def stopped_while_it_waits(
    blocking: Client, queue: str, consumer: SyncConsumer, stop: Callable[[], None]
) -> list[SyncMessage]:
    """What it still gives, once it has given a message, and another thread has stopped it."""
    blocking.queues.put(queue, 1)
    messages = iter(consumer)
    with next(messages):
        pass
    stopping = threading.Thread(target=stop)
    stopping.start()  # whether it comes before the next take or in the midst of it, that one ends
    rest = list(messages)
    stopping.join()
    return rest


def test_a_controller_that_hangs_hides_no_error(cluster: Cluster, queue: str) -> None:
    (controller,) = cluster.controllers
    client = Client([cluster.addresses])
    client.queues.put(queue, 1)
    held = iter(client.consume(queue, consumer="c1"))  # as a traceback holds it
    try:
        message = next(held)
        controller.send(signal.SIGSTOP)
        with pytest.raises(KeyboardInterrupt), client, message:
            raise KeyboardInterrupt
    finally:
        controller.send(signal.SIGCONT)
    with pytest.raises(ClientError, match="was closed"):
        next(held)


def test_a_consumer_takes_no_key(blocking: Client, queue: str) -> None:
    with pytest.raises(Invalid, match="Idempotency-Key"):
        blocking.with_key("k").consume(queue, consumer="c1")
