"""Only what was seen (`etag=`, --if-match), and only once (`with_key`, --idempotency-key): on real controllers."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from cronring.client import AsyncClient, Client, Conflict, EtagMismatch, Invalid, JobSpec, JsonText, KeyReused
from tests.integration.client.conftest import KEY
from tests.support.cluster import Cluster

Change = Callable[[str], Awaitable[Any]]


async def only_as_seen(change: Change, etag: str) -> None:
    """A change that holds is made once with one etag."""
    assert etag
    with pytest.raises(EtagMismatch, match="read it anew"):
        await change("AAAA")
    await change(etag)
    with pytest.raises(Conflict):
        await change(etag)


async def run(cluster: Cluster, *arguments: str) -> tuple[int, str]:
    """Its exit code, and all that it printed."""
    done = await asyncio.to_thread(cluster.ask, *arguments)
    return done.returncode, done.stdout + done.stderr


async def test_what_has_an_etag_is_changed_as_it_was_seen(cluster: Cluster) -> None:
    async with AsyncClient([cluster.addresses.split(",")[0]]) as client:
        jobs, limits, templates, queues = client.jobs, client.limits, client.templates, client.queues
        made = await jobs.create("billing", "close_day", "etag", JobSpec("every 1h"))
        seen = await jobs.get(made.key)
        assert seen.etag == made.etag
        slower = JobSpec("every 2h")
        await only_as_seen(lambda tag: jobs.update(made.key, slower, ["schedule"], etag=tag), seen.etag)
        await client.defaults.update(retries=1)
        rare = (await client.defaults.get()).etag
        await only_as_seen(lambda tag: client.defaults.update(retries=2, etag=tag), rare)
        limit = await limits.set(7, "billing")
        assert [each.etag for each in await limits.list()] == [limit.etag]
        await only_as_seen(lambda tag: limits.set(8, "billing", etag=tag), limit.etag)
        template = await templates.set("nightly", JobSpec("every 3h"))
        await only_as_seen(lambda tag: templates.set("nightly", slower, etag=tag), template.etag)
        await client.notifications.add("pager", "https://127.0.0.1:1/hook")
        hook = await client.notifications.get("pager")
        await only_as_seen(
            lambda tag: client.notifications.set_enabled("pager", enabled=False, reason="x", etag=tag), hook.etag
        )
        turned = await client.notifications.get("pager")
        await queues.put("reports", 1)
        (row,) = await queues.list()
        assert row.changed_at is None
        await only_as_seen(lambda tag: queues.set("reports", max_deliveries=3, etag=tag), row.etag)
        (active,) = await client.deployments.list(active_only=True)
        version = await client.deployments.get(active.key)
        with pytest.raises(EtagMismatch):
            await client.deployments.kill(active.key, etag="AAAA")
        with pytest.raises(EtagMismatch):
            await client.deployments.activate(active.key, etag="AAAA")
        assert not (await client.deployments.activate(active.key, etag=version.etag)).activated
        for remove, etag in (
            (lambda tag: jobs.delete(made.key, etag=tag), (await jobs.get(made.key)).etag),
            (lambda tag: limits.remove("billing", etag=tag), (await limits.list())[0].etag),
            (lambda tag: templates.delete("nightly", etag=tag), (await templates.get("nightly")).etag),
            (lambda tag: client.notifications.remove("pager", etag=tag), turned.etag),
        ):  # fmt: skip
            with pytest.raises(EtagMismatch):
                await remove("AAAA")
            await remove(etag)


async def test_of_four_who_set_a_queue_one_is_in_time(cluster: Cluster) -> None:
    async with AsyncClient(cluster.addresses.split(",")) as client:
        await client.queues.put("reports", 1)
        for most in (3, 7, 11):  # also the first time, where there is no row to lock
            (row,) = await client.queues.list()
            answers = await asyncio.gather(
                *(client.queues.set("reports", max_deliveries=most + each, etag=row.etag) for each in range(4)),
                return_exceptions=True,
            )
            assert sorted(type(each).__name__ for each in answers) == ["EtagMismatch"] * 3 + ["Queue"]


async def test_a_key_of_ones_own_makes_a_change_once(cluster: Cluster) -> None:
    addresses = cluster.addresses.split(",")
    async with AsyncClient(addresses) as client, AsyncClient(addresses[1:]) as another:
        both = client, another
        first = await client.with_key("run-1").jobs.trigger(KEY, note="once")
        again = await another.with_key("run-1").jobs.trigger(KEY, note="once")
        assert again == first
        with pytest.raises(KeyReused, match="another key"):
            await client.with_key("run-1").jobs.trigger(KEY, note="another")
        assert (await client.jobs.trigger(KEY, note="once")).id != first.id, "the client itself has no key"
        ids = [await each.with_key("m1").queues.put("reports", {"a": 1}) for each in both]
        assert ids == [ids[0]] * 2
        assert [each.payload for each in await client.queues.messages("reports")] == ['{"a":1}']
        with pytest.raises(Invalid, match="secret"):
            await client.with_key("w1").notifications.add("pager", "https://127.0.0.1:1/hook")
        orders = [[row async for row in each.with_key("t1").jobs.control("trigger", module="billing")] for each in both]
        assert orders[0] == orders[1]
        with pytest.raises(Invalid, match="255"):
            client.with_key("")
    with Client(addresses) as blocking:
        assert blocking.with_key("run-1").jobs.trigger(KEY, note="once") == first
        with pytest.raises(Invalid, match="255"):
            blocking.with_key("two words")


async def test_payloads_are_values_and_texts_by_name(cluster: Cluster) -> None:
    """Whatever takes one takes a value; what is text already is named so, and what is read may be given back."""
    async with AsyncClient(cluster.addresses.split(",")) as client:
        for payload, sent in (({"a": 1}, '{"a":1}'), ("text", '"text"'), (7, "7"), (JsonText("[1]"), "[1]")):
            message = await client.queues.put("reports", payload)
            job = await client.schedule("reports", manual=True, payload=payload)
            same = await client.jobs.update(job.key, JobSpec(payload=job.payload), ["payload"])
            await client.jobs.trigger(job.key, payload, note=f"of {message}")
            told = {str(json.dumps(json.loads(each), separators=(",", ":"))) for each in (job.payload, same.payload)}
            assert told == {sent}
            assert same.unchanged
        for wrong in ({1, 2}, float("nan"), object()):
            with pytest.raises(Invalid) as caught:
                await client.queues.put("reports", wrong)
            assert caught.value.violations[0][0] == "payload"


async def test_the_command_line_has_both(cluster: Cluster) -> None:
    made = (await run(cluster, "jobs", "create", "billing.close_day", "--name", "c", "--every", "1h", "-o", "json"))[1]
    job = json.loads(made)
    late = await run(cluster, "jobs", "update", job["key"], "--every", "2h", "--if-match", "AAAA")
    assert (late[0], "it has been changed since" in late[1]) == (1, True)
    assert (await run(cluster, "jobs", "update", job["key"], "--every", "2h", "--if-match", job["etag"]))[0] == 0
    late = await run(cluster, "jobs", "delete", job["key"], "--if-match", job["etag"])
    assert (late[0], "it has been changed since" in late[1]) == (1, True)
    ids = set()
    for _ in range(2):
        code, told = await run(cluster, "jobs", "trigger", KEY, "--idempotency-key", "k1", "-o", "json")
        assert code == 0, told
        ids.add(json.loads(told)["id"])
    assert len(ids) == 1
    code, told = await run(cluster, "jobs", "trigger", KEY, "--idempotency-key", "k1", "--note", "another")
    assert (code, "another key" in told) == (1, True)
    many = ("jobs", "trigger", "--module", "billing", "--idempotency-key", "k2", "--yes", "-o", "json")
    orders = [await run(cluster, *many) for _ in range(2)]
    assert (orders[0][0], orders[0]) == (0, orders[1])
    code, told = await run(cluster, "jobs", "trigger", KEY, "--idempotency-key", "two words")
    assert (code, "--idempotency-key" in told) == (1, True)
    put = [await run(cluster, "queues", "put", "reports", '{"a": 1}', "--idempotency-key", "m1") for _ in range(2)]
    assert put[0] == put[1]
    late = await run(cluster, "queues", "set", "reports", "--max-deliveries", "2", "--if-match", "AAAA")
    assert (late[0], "it has been changed since" in late[1]) == (1, True)
