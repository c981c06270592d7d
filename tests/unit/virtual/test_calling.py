"""Verbs in this process: what takes virtual time, and what takes real time."""

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from cronring.virtual.calling import Caller

HOUR_US = 3_600_000_000


@pytest.fixture
def caller() -> Iterator[Caller]:
    made = Caller()
    yield made
    made.close()


def test_sleeping_takes_virtual_time_only(caller: Caller) -> None:
    async def verb() -> None:
        async with asyncio.timeout(4_000):
            await asyncio.sleep(1_800)

    before = time.monotonic()
    ended = caller.call(verb, HOUR_US)
    assert (ended.error, ended.took_us, ended.timed_out) == (None, 1_800_000_000, False)
    assert time.monotonic() - before < 60


def test_threads_are_waited_for_in_real_time(caller: Caller) -> None:
    async def verb() -> None:
        async with asyncio.timeout(30):  # would jump to its end if the thread were overlooked
            await asyncio.to_thread(time.sleep, 0.05)

    ended = caller.call(verb, HOUR_US)
    assert ended.error is None
    assert 40_000 <= ended.took_us < 30_000_000


def test_the_end_of_threads_is_waited_for_in_real_time(caller: Caller) -> None:
    """Python 3.13 gives them five minutes, which were virtual ones."""

    class Slow(ThreadPoolExecutor):
        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            time.sleep(0.1)
            super().shutdown(wait, cancel_futures=cancel_futures)

    async def verb() -> None:
        asyncio.get_running_loop().set_default_executor(Slow())

    assert caller.call(verb, HOUR_US).error is None
    caller.close()


def test_sockets_are_waited_for_in_real_time(caller: Caller) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        writer.close()

    async def verb() -> None:
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server, asyncio.timeout(30):
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(b"hello\n")
            print((await reader.readline()).decode().strip())
            writer.close()
            await writer.wait_closed()

    ended = caller.call(verb, HOUR_US)
    assert (ended.error, ended.output) == (None, "hello\n")
    assert ended.took_us < 30_000_000


def test_a_coroutine_is_cancelled_at_its_limit(caller: Caller) -> None:
    cleaned: list[str] = []

    async def verb() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(2)
            cleaned.append("up")

    ended = caller.call(verb, HOUR_US)
    assert (ended.timed_out, ended.took_us, cleaned) == (True, HOUR_US + 2_000_000, ["up"])


def test_exceptions_are_kept_and_interrupts_go_their_way(caller: Caller) -> None:
    def leaves() -> None:
        raise SystemExit(3)

    def interrupted() -> None:
        raise KeyboardInterrupt

    assert caller.call(leaves, HOUR_US).told[0] == "SystemExit"
    with pytest.raises(KeyboardInterrupt):
        caller.call(interrupted, HOUR_US)


def test_output_is_kept_and_still_shown(caller: Caller, capsys: pytest.CaptureFixture[str]) -> None:
    assert caller.call(lambda: print("seen"), HOUR_US).output == "seen\n"
    assert capsys.readouterr().out == "seen\n"
