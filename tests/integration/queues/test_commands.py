"""`cronring queues ...` against a real controller."""

import asyncio
import contextlib
import json
import os
import select
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cronring.client import AsyncClient, JsonText
from tests.support import programs
from tests.support.cluster import Cluster
from tests.support.waiting import TIMEOUT_S


async def run(cluster: Cluster, *arguments: str, group: str = "queues") -> tuple[int, str]:
    """Its exit code, and all that it printed."""
    environment = cluster.environment | {"CRONRING_CONTROLLERS": cluster.addresses}
    done = await asyncio.to_thread(programs.run, (group, *arguments), environment)
    return done.returncode, done.stdout + done.stderr


async def test_a_command_is_run_for_each_message_and_its_exit_code_decides(
    cluster: Cluster, client: AsyncClient, queue: str
) -> None:
    await client.queues.set(queue, max_deliveries=1)
    for payload in ('{"to": "ada"}', '"bad"', '{"to": "bob"}'):
        await client.queues.put(queue, JsonText(payload), "post")
    script = 'read -r line; echo "$CRONRING_WORKSPACE $CRONRING_DELIVERY $line"; [ "$line" != \'"bad"\' ]'
    code, told = await run(cluster, "consume", queue, "--until-empty", "--", "sh", "-c", script)
    assert code == 0, told
    assert [line for line in told.splitlines() if line.startswith("post")] == [
        'post 1 {"to":"ada"}', 'post 1 "bad"', 'post 1 {"to":"bob"}',
    ]  # fmt: skip
    assert f"{queue}: 2 done, 1 failed" in told
    assert "sh ended with exit code 1; the message is dead: `cronring queues dead` lists it" in told
    assert "Traceback" not in told
    (letter,) = await client.queues.dead_letters(queue)
    assert (letter.payload, letter.error_message) == ('"bad"', "sh ended with exit code 1")


async def test_dead_letters_are_listed_replayed_and_removed(cluster: Cluster, client: AsyncClient, queue: str) -> None:
    await client.queues.set(queue, max_deliveries=1)
    ids = [await client.queues.put(queue, number) for number in (1, 2)]
    for _ in ids:
        lease = await client.queues.take(queue, "c1", most=1)
        await client.queues.retry(lease, [lease.messages[0].id], "it broke", "ValueError")
    assert "ValueError: it broke" in (await run(cluster, "dead", queue))[1]
    assert await run(cluster, "replay", queue, "--all", "--dry-run") == (0, f"{queue}: 2 would be replayed\n")
    for _ in range(2):  # by its key it is done once, and answered again
        once = await run(cluster, "replay", queue, str(ids[1]), "--idempotency-key", f"{queue}-1")
        assert once == (0, f"{queue}: 1 replayed\n")
    lease = await client.queues.take(queue, "c1", most=1)
    await client.queues.retry(lease, [ids[1]], "it broke again", "ValueError")
    assert await run(cluster, "replay", queue, str(ids[0]), "999999") == (
        1,
        f"{queue}: 1 replayed\nerror: no dead letters of {queue}: 999999; `cronring queues dead {queue}` lists those "
        "that there are\n",
    )
    assert await run(cluster, "remove", queue, "--all", "--yes") == (0, f"{queue}: 1 removed\n")
    assert [message.id for message in await client.queues.messages(queue)] == ids[:1]


async def test_a_queue_is_set_and_listed(cluster: Cluster, client: AsyncClient, queue: str) -> None:
    await client.queues.put(queue, 1, "a")
    code, told = await run(cluster, "set", queue, "--on-retry", "pass", "--note", "no order")
    assert (code, "others pass it" in told) == (0, True)
    (line,) = [line for line in (await run(cluster, "list"))[1].splitlines() if queue in line]
    assert line.split()[1] == "1"
    assert line.split()[-1] == "pass"
    assert (await run(cluster, "set", queue))[0] == 2
    assert (await run(cluster, "list", "--namespace", "a b"))[0] == 0


async def test_a_message_is_put_by_hand(cluster: Cluster, client: AsyncClient, queue: str, tmp_path: Path) -> None:
    code, told = await run(cluster, "put", queue, '{"to": "ada"}', "--workspace", "post")
    assert (code, told.splitlines()[1]) == (0, f"  see it: cronring queues messages {queue}")
    (tmp_path / "letter.json").write_text('"later"')
    code, told = await run(
        cluster, "put", queue, f"@{tmp_path}/letter.json", "--not-before", "2035-01-01", "-o", "json"
    )
    assert code == 0, told
    messages = await client.queues.messages(queue)
    assert [(each.workspace, each.payload) for each in messages] == [("post", '{"to":"ada"}'), ("", '"later"')]
    assert messages[1].id == json.loads(told)["id"]
    assert messages[1].run_at == datetime(2035, 1, 1, tzinfo=UTC)
    code, told = await run(cluster, "put", queue, "{not json")
    assert (code, "JSON" in told) == (1, True), told


async def test_a_failure_is_a_line_that_says_how_it_ended_and_what_comes(
    cluster: Cluster, client: AsyncClient, queue: str
) -> None:
    ids = [await client.queues.put(queue, "1", workspace) for workspace in ("a", "b")]
    script = '[ "$CRONRING_WORKSPACE" = a ] && exit 3; kill -9 $$'
    code, told = await run(cluster, "consume", queue, "--limit", "2", "--", "sh", "-c", script)
    assert (code, "Traceback" in told) == (0, False), told
    again = "the message comes again later"
    assert sorted(line for line in told.splitlines() if line.startswith("message")) == sorted([
        f"message {ids[0]}, delivery 1: sh ended with exit code 3; {again}",
        f"message {ids[1]}, delivery 1: sh was ended by SIGKILL; {again}",
    ])  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the kernel does not tell of it")
async def test_a_command_does_not_outlive_its_consumer(
    cluster: Cluster, client: AsyncClient, queue: str, tmp_path: Path
) -> None:
    """Nor what it started: both hold a pipe that closes with the last of them."""
    await client.queues.put(queue, "1")
    held = tmp_path / "held"
    os.mkfifo(held)
    # The shell's own child has the other end as well. Who has been given its payload is held to its consumer.
    script = f"read -r line; exec 7> {held}; sleep 600 & echo $$ >&7; wait"
    command = [sys.executable, "-m", "cronring.cli.main", "queues", "consume", queue, "--", "sh", "-c", script]
    environment = cluster.environment | {"CRONRING_CONTROLLERS": cluster.addresses}
    reading, group = os.open(held, os.O_RDONLY | os.O_NONBLOCK), 0  # without that it would wait for a writer
    consumer = await asyncio.create_subprocess_exec(*command, env=environment)
    try:
        group = int(await piped(reading, "the command was not begun"))
        consumer.kill()
        await consumer.wait()
        assert await piped(reading, "it has outlived its consumer") == b"", "its end is the last writer's"
    finally:
        with contextlib.suppress(ProcessLookupError):
            consumer.kill()
        await consumer.wait()
        with contextlib.suppress(ProcessLookupError):
            if group:
                os.killpg(group, signal.SIGKILL)
        os.close(reading)


async def piped(reading: int, otherwise: str) -> bytes:
    """What is written next; b"": whoever could write is gone. Before somebody could, it is neither."""
    assert (await asyncio.to_thread(select.select, [reading], [], [], TIMEOUT_S))[0], otherwise
    return os.read(reading, 100)


async def test_what_a_command_left_in_the_background_goes_on_once_it_has_ended(
    cluster: Cluster, client: AsyncClient, queue: str, tmp_path: Path
) -> None:
    await client.queues.put(queue, "1")
    go, left = tmp_path / "go", tmp_path / "left"
    ends = []
    for fifo in (go, left):
        os.mkfifo(fifo)
        ends.append(os.open(fifo, os.O_RDWR))  # which waits for nobody
    script = f"(read -r line < {go}; echo $line > {left}) > /dev/null 2>&1 &"
    code, told = await run(cluster, "consume", queue, "--until-empty", "--", "sh", "-c", script)
    assert (code, "1 done" in told) == (0, True), told
    os.write(ends[0], b"there\n")
    assert await piped(ends[1], "it was killed") == b"there\n"
    for end in ends:
        os.close(end)


async def test_a_workspace_of_which_there_is_nothing_is_told_so(
    cluster: Cluster, client: AsyncClient, queue: str
) -> None:
    for arguments in (["show"], ["delete"], ["delete", "--yes"], ["delete", "--dry-run"]):
        code, told = await run(cluster, *arguments, "nope", group="workspaces")
        assert (code, "there is nothing of 'nope' in default" in told) == (1, True), told
    await client.queues.put(queue, "1", "nope")
    assert (await run(cluster, "show", "nope", group="workspaces"))[0] == 0
    assert (await run(cluster, "delete", "nope", group="workspaces"))[0] == 2
    code, told = await run(cluster, "delete", "nope", "--yes", group="workspaces")
    assert (code, "0 jobs deleted, and 1 messages" in told) == (0, True), told
