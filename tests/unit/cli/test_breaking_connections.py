"""A connection that breaks at each point of a change: what the client says is so, and nothing is done twice."""

import asyncio
import contextlib
from collections.abc import Iterator

import pytest

from cronring.client import AsyncClient, ClientError, NotFound, OutcomeUnknown
from cronring.client.model import JobSpec
from tests.support.cutting import Direction, Streams, cutting
from tests.unit.cli.fake_api import FakeApi, changes, serving


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("kind", ["trigger", "create", "bulk"])
async def test_a_connection_that_breaks_at_each_point_does_nothing_twice(direction: Direction, kind: str) -> None:
    """The proxy's own end of the connection is a real one; the second controller is always there.

    What has a key comes to a known end by that; a stream has none.
    """
    told: set[str] = set()
    after = 1
    while True:
        with sharing_keys() as (first, second):
            async with cutting(lambda: _connect(first.address), direction, after) as way:
                async with AsyncClient([f"127.0.0.1:{way.port}", second.address], timeout_s=3) as client:
                    outcome = await _told(client, kind)
                cut, passed = way.has_cut, way.passed
            done = changes(first) + changes(second)
        told.add(outcome)
        assert done <= 1, f"{outcome}, with {after} bytes {direction.value}: done {done} times"
        assert outcome != "done" or done == 1, f"said to be done, with {after} bytes {direction.value}"
        assert outcome in {"done", "unknown"}, f"{outcome}, with {after} bytes {direction.value}"
        if not cut:
            break
        after += max(1, passed // 40)
    assert told == ({"done", "unknown"} if kind == "bulk" else {"done"})


@contextlib.contextmanager
def sharing_keys() -> Iterator[tuple[FakeApi, FakeApi]]:
    """Two controllers of one database."""
    one, two = FakeApi(), FakeApi()
    two.keys = one.keys
    with serving(one) as first, serving(two) as second:
        yield first, second


async def _connect(address: str) -> Streams:
    host, _, port = address.rpartition(":")
    return await asyncio.open_connection(host, int(port))


async def _told(client: AsyncClient, kind: str) -> str:
    try:
        if kind == "trigger":
            await client.jobs.trigger("billing.refresh")
        elif kind == "create":
            await client.jobs.create("billing", "refresh", "a", JobSpec("* * * * *"))
        else:
            async for _ in client.jobs.control("trigger", module="billing"):
                pass
    except OutcomeUnknown:
        return "unknown"
    except (ClientError, NotFound) as error:
        return f"{type(error).__name__}: {error}"
    return "done"
