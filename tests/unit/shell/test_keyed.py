"""What becomes of a request's key when its caller goes while it begins."""

import asyncio

import pytest

from cronring.controller.api.calls import CALLER_GONE
from cronring.controller.api.keyed import Once
from cronring.controller.ports.request_keys import FormerRequest, RequestKey
from tests.support.request_keys import MemoryRequestKeys

KEY = RequestKey("somebody", "/cronring.v1.Jobs/TriggerJob", "k1")


class SlowKeys(MemoryRequestKeys):
    """As PostgreSQL, whose row is there some time before its answer is."""

    def __init__(self) -> None:
        super().__init__(lambda: 1)
        self.is_there, self.answers = asyncio.Event(), asyncio.Event()

    async def begin(self, key: RequestKey, request_hash: bytes) -> FormerRequest | int:
        begun = await super().begin(key, request_hash)
        self.is_there.set()
        await self.answers.wait()
        return begun


@pytest.mark.parametrize("word", [CALLER_GONE, "out of time"])
async def test_a_request_that_was_given_up_before_it_was_done_leaves_its_key_free(word: str) -> None:
    keys, done = SlowKeys(), list[int]()
    once = Once(keys)

    async def behave() -> int:
        done.append(1)
        return 7

    def asked() -> "asyncio.Task[int | bytes]":
        return asyncio.create_task(once.former_or_done(KEY, b"digest", behave, lambda answer: str(answer).encode()))

    first = asked()
    await keys.is_there.wait()
    first.cancel(word)
    with pytest.raises(asyncio.CancelledError):
        await first
    keys.answers.set()
    for _ in range(10):
        await asyncio.sleep(0)  # a turn of the loop: what was begun is forgotten by itself
    assert done == []
    assert [await asked(), await asked()] == [7, b"7"]
    assert done == [1]
