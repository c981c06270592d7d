"""Messages and dead letters of one workspace; and that nobody replays or removes all by leaving something out."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cronring.client import AsyncClient
from cronring.client.errors import Invalid
from tests.integration.queues.test_by_rest import Caller
from tests.support.cluster import Cluster


async def bury(client: AsyncClient, queue: str, *workspaces: str) -> list[int]:
    """A dead letter of each; their ids."""
    ids = [await client.queues.put(queue, f"{number}", each) for number, each in enumerate(workspaces)]
    while (lease := await client.queues.take(queue, "undertaker", most=100)).messages:
        await client.queues.retry(lease, [each.id for each in lease.messages], "no", last=True)
    return ids


@pytest.mark.parametrize("deed", ["replay", "remove"])
async def test_an_empty_body_changes_nothing(cluster: Cluster, client: AsyncClient, queue: str, deed: str) -> None:
    caller, ids = Caller(cluster), await bury(client, queue, "a", "b", "")

    async def told(**body: Any) -> tuple[int, Any]:
        status, answer = await caller.post(f"default/{queue}/dead-letters:{deed}", **body)
        return status, [each["field"] for each in answer["violations"]] if status == 400 else answer

    bodies: tuple[dict[str, Any], ...] = (
        {},
        {"message_ids": []},
        {"all": False},
        {"workspace": "a"},
        {"workspace": ""},
        {"dry_run": True},
    )
    for body in bodies:
        assert await told(**body) == (400, ["message_ids"]), body
    assert await told(all=True, message_ids=ids) == (400, ["all"])
    assert await told(all=True, workspace="w é") == (400, ["workspace"])
    assert [each.id for each in await client.queues.dead_letters(queue)] == ids
    order = getattr(client.queues, deed)
    with pytest.raises(Invalid, match="message_ids"):
        await order(queue)
    assert await order(queue, ids=ids[:2], workspace="a") == ids[:1]
    assert await order(queue, everything=True, workspace="") == ids[2:]
    assert await order(queue, everything=True) == ids[1:2]


async def test_a_workspace_is_listed_alone_and_in_pages(cluster: Cluster, client: AsyncClient, queue: str) -> None:
    """Its messages stand in the order in which consumers get them."""
    later = datetime.now(UTC) + timedelta(hours=1)
    ids = [await client.queues.put(queue, "1", workspace, not_before=at) for workspace, at in (
        ("a", later), ("b", None), ("a", None), ("", None), ("a", datetime(2026, 1, 1, tzinfo=UTC)),
    )]  # fmt: skip
    listed = await client.queues.messages(queue, workspace="a")
    assert [each.id for each in listed] == [ids[4], ids[2], ids[0]]
    assert [each.id for each in await client.queues.messages(queue, workspace="")] == [ids[3]]
    assert [each.id for each in await client.queues.messages(queue)] == ids
    status, page = await Caller(cluster).get(f"default/{queue}/messages?workspace=a&page_size=2")
    assert (status, [each["id"] for each in page["messages"]]) == (200, [str(ids[4]), str(ids[2])])
    token = page["next_page_token"]
    _, rest = await Caller(cluster).get(f"default/{queue}/messages?workspace=a&page_size=2&page_token={token}")
    assert ([each["id"] for each in rest["messages"]], rest["next_page_token"]) == ([str(ids[0])], "")
    assert (await Caller(cluster).get(f"default/{queue}/messages?workspace=b&page_token={token}"))[0] == 400
    assert (await Caller(cluster).get(f"default/{queue}/messages?workspace=w%20%C3%A9"))[0] == 400


async def test_dead_letters_of_a_workspace(cluster: Cluster, client: AsyncClient, queue: str) -> None:
    ids = await bury(client, queue, "a", "b", "a", "")
    assert [each.id for each in await client.queues.dead_letters(queue, workspace="a")] == [ids[0], ids[2]]
    status, none = await Caller(cluster).get(f"default/{queue}/dead-letters?workspace=")
    assert (status, [each["id"] for each in none["dead_letters"]]) == (200, [str(ids[3])])
    assert [row["id"] for row in cluster.cli("queues", "dead", queue, "--workspace", "b")] == [ids[1]]
    removed = cluster.cli("queues", "remove", queue, "--all", "--workspace", "a", "--yes")
    assert removed["ids"] == [ids[0], ids[2]]
    replayed = cluster.cli("queues", "replay", queue, "--all", "--workspace", "", "--yes")
    assert replayed["ids"] == [ids[3]]
    assert [row["id"] for row in cluster.cli("queues", "messages", queue, "--workspace", "")] == [ids[3]]
