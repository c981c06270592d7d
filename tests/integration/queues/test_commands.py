"""`cronring queues ...` against a real controller."""

import asyncio
import subprocess
import sys

from cronring.client import AsyncClient, JsonText
from tests.support.cluster import READY_S, Cluster


async def run(cluster: Cluster, *arguments: str) -> tuple[int, str]:
    """Its exit code, and all that it printed."""
    command = [sys.executable, "-m", "cronring.cli.main", "queues", *arguments]
    environment = cluster.environment | {"CRONRING_CONTROLLERS": cluster.addresses}
    done = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, timeout=READY_S, env=environment, check=False
    )
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
    (letter,) = await client.queues.dead_letters(queue)
    assert (letter.payload, letter.error_message) == ('"bad"', "sh ended with exit code 1")


async def test_a_message_is_put(cluster: Cluster, client: AsyncClient, queue: str) -> None:
    code, told = await run(cluster, "put", queue, '{"a": [1]}', "--workspace", "w", "--not-before", "+1h")
    (message,) = await client.queues.messages(queue)
    assert (code, told) == (0, f"{queue}: message {message.id} waits for a consumer\n")
    assert (message.payload, message.workspace) == ('{"a":[1]}', "w")
    assert message.run_at is not None
    assert message.enqueued_at is not None
    assert message.run_at > message.enqueued_at
    assert (await run(cluster, "put", queue, "{"))[0] == 1


async def test_dead_letters_are_listed_replayed_and_removed(cluster: Cluster, client: AsyncClient, queue: str) -> None:
    await client.queues.set(queue, max_deliveries=1)
    ids = [await client.queues.put(queue, number) for number in (1, 2)]
    for _ in ids:
        lease = await client.queues.take(queue, "c1", most=1)
        await client.queues.retry(lease, [lease.messages[0].id], "it broke", "ValueError")
    assert "ValueError: it broke" in (await run(cluster, "dead", queue))[1]
    assert await run(cluster, "replay", queue, "--all", "--dry-run") == (0, f"{queue}: 2 would be replayed\n")
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
