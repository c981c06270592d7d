"""The sync client where people use it: scripts, threads, running loops, forked workers."""

import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest

from cronring.client import AsyncClient, Client, ClientError, JobSpec, NotFound, Unreachable
from tests.support.waiting import TIMEOUT_S
from tests.unit.cli.fake_api import FakeApi, serving

# In a process of its own: that of the tests has gRPC's servers in it.
FORKING: Final = """
import asyncio, os, sys
from cronring.client import AsyncClient, Client, ForkedError

ADDRESS = sys.argv[1]

def child(does):
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        does()
    except BaseException as error:
        print(repr(error), flush=True)
        os._exit(1)
    os._exit(0)

def lists(client):
    assert len(client.jobs.list()) == 2

def is_told(client):
    try:
        client.jobs.list()
    except ForkedError as error:
        assert "in the workers" in str(error)
    else:
        raise AssertionError("it was let through")
"""


def forking(program: str, address: str) -> None:
    """Runs it; whatever hangs is ended."""
    done = subprocess.run(
        # Python 3.12 and later warn by themselves of any fork beside threads.
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKING + textwrap.dedent(program), address],
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_script_asks_and_changes(api: FakeApi) -> None:
    with Client([api.address]) as client:
        assert [job.key for job in client.jobs.list()] == ["billing.close_month", "billing.refresh"]
        assert client.jobs.create("billing", "refresh", "x", JobSpec("every 2h")).key == "billing.refresh:x"
        with pytest.raises(NotFound, match=r"billing\.nothing"):
            client.jobs.get("billing.nothing")
        assert client.current_address == api.address


async def test_in_a_thread_whose_loop_runs(api: FakeApi) -> None:
    """As in a notebook's kernel."""
    with Client([api.address]) as client:
        assert len(client.jobs.list()) == 2
        async with AsyncClient([api.address]) as beside:
            assert len(await beside.jobs.list()) == len(client.jobs.list())


def test_whoever_waits_is_told_when_it_is_closed(api: FakeApi) -> None:
    client = Client([api.address])
    watching = client.watch_jobs()
    assert [next(watching).kind.value for _ in range(3)] == ["present", "present", "listed"]
    with ThreadPoolExecutor(1) as threads:
        waits = threads.submit(next, watching)
        client.close()
        with pytest.raises(ClientError, match="was closed"):
            waits.result(TIMEOUT_S)


def test_of_several_threads(api: FakeApi) -> None:
    with Client([api.address]) as client, ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: len(client.jobs.list()), range(100)))
    assert found == [2] * 100


def test_after_close_it_connects_anew_and_leaves_no_thread(api: FakeApi) -> None:
    client = Client([api.address])
    for _ in range(3):
        client.jobs.list()
        client.close()
        assert not [each for each in threading.enumerate() if each.name == "cronring client"]


def test_a_stream_is_an_iterator_and_ends_with_it(api: FakeApi) -> None:
    with Client([api.address]) as client:
        watching = client.watch_jobs()
        assert [next(watching).kind.value for _ in range(3)] == ["present", "present", "listed"]
        del watching
        assert len(client.jobs.list()) == 2
    execution = client.executions.wait(3)
    assert (execution.id, execution.output) == (3, "hello\n")


def test_what_was_idle_is_used_on_both_sides_of_a_fork(api: FakeApi) -> None:
    """As by workers of gunicorn or Celery, whose master has loaded the program."""
    forking(
        """
        client = Client([ADDRESS])
        for _ in range(20):
            lists(client)
            watching = client.watch_jobs()
            next(watching)
            watching.close()
            assert child(lambda: lists(client)) == 0
            assert child(lambda: lists(Client([ADDRESS]))) == 0
        """,
        api.address,
    )


def test_a_fork_while_a_call_is_under_way_is_warned_of(api: FakeApi) -> None:
    """What becomes of the child is gRPC's: some hang."""
    forking(
        """
        import warnings
        client = Client([ADDRESS])
        watching = client.watch_jobs()
        next(watching)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            pid = os.fork()
            if pid == 0:
                os._exit(0)
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        ours = [each.category for each in told if each.category is not DeprecationWarning]
        assert ours == [RuntimeWarning], told
        assert next(watching).kind.value == "present", "the parent's goes on"
        """,
        api.address,
    )


def test_a_child_of_a_process_with_an_open_async_client_is_told_so(api: FakeApi) -> None:
    forking(
        """
        async def main():
            async with AsyncClient([ADDRESS]) as client:
                await client.jobs.list()
                assert child(lambda: is_told(Client([ADDRESS]))) == 0
        asyncio.run(main())
        """,
        api.address,
    )


def test_its_own_thread_waits_for_nobody() -> None:
    told: list[str] = []

    def waits(why: str) -> None:
        with pytest.raises(RuntimeError, match="own thread"):
            client.jobs.list()
        told.append(why)

    client = Client(["127.0.0.1:1"], waiting=waits)
    with pytest.raises(Unreachable):
        client.jobs.list()
    wire = client._wire
    assert wire.run(lambda _: _in_thread(waits)) is None
    assert told == ["now"]
    client.close()


def test_a_script_that_never_closes_it_ends(api: FakeApi) -> None:
    program = (
        "from cronring.client import Client\n"
        f"client = Client(['{api.address}'])\n"
        "watching = client.watch_jobs()\n"
        "print(next(watching).kind.value, len(client.jobs.list()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "present 2\n", "")


def test_the_next_controller_answers_when_one_dies() -> None:
    with serving(FakeApi()) as other:
        with serving(FakeApi()) as first:
            client = Client([first.address, other.address])
            client.jobs.list()
            assert client.current_address == first.address
        assert len(client.jobs.list()) == 2
        assert client.current_address == other.address
        client.close()


async def _in_thread(waits: Callable[[str], None]) -> None:
    waits("now")
