"""/api/v1/events on real HTTP and PostgreSQL: what happens, in order, and where one goes on."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

import aiohttp
import pytest

from cronring.controller.api import hub
from cronring.schema.execution import Outcome
from tests.integration.api.conftest import Scene
from tests.support.rested import Rested
from tests.support.waiting import TIMEOUT_S

EVENTS: Final = "/api/v1/events"
JOBS: Final = ["billing/xm.xa", "billing/xm.xb", "billing/xm.xc"]


class Heard(NamedTuple):
    id: str
    name: str
    data: Any


class Listening:
    """As a browser reads server-sent events. `last_id`: what it would come back with."""

    def __init__(self, content: aiohttp.StreamReader) -> None:
        self._content = content
        self.last_id = ""

    async def next(self, *names: str) -> Heard:
        """The next one of these names; of any, without names."""
        async with asyncio.timeout(TIMEOUT_S):
            while True:
                heard = await self._frame()
                if heard.name in names or not names:
                    return heard

    async def _frame(self) -> Heard:
        fields = {"id": "", "event": "", "data": ""}
        while line := (await self._content.readline()).decode().rstrip("\n"):
            key, _, value = line.partition(": ")
            if key:
                fields[key] = value
        self.last_id = fields["id"] or self.last_id
        return Heard(fields["id"], fields["event"], json.loads(fields["data"]) if fields["data"] else None)


@asynccontextmanager
async def listening(rest: Rested, by: str, last_id: str = "", query: str = "") -> AsyncIterator[Listening]:
    headers = {"Authorization": f"Bearer test-{by}", "Accept": "text/event-stream"}
    if last_id:
        headers["Last-Event-ID"] = last_id
    async with rest.session.get(f"{EVENTS}{query}", headers=headers) as answer:
        assert (answer.status, answer.content_type) == (200, "text/event-stream")
        assert answer.headers["Cache-Control"] == "no-store, no-transform"
        yield Listening(answer.content)


async def poll(rest: Rested, by: str, token: str = "") -> Any:
    headers = {"Authorization": f"Bearer test-{by}"}
    async with rest.session.get(f"{EVENTS}:poll", params={"resume_token": token}, headers=headers) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.json()


async def test_what_happens_is_told_to_those_who_may_know(rest: Rested, scene: Scene) -> None:
    world, (_, running) = scene.world, scene.billing
    async with listening(rest, "viewer") as heard, listening(rest, "elsewhere") as elsewhere:
        for each in (heard, elsewhere):
            assert (await each.next()).id, "the first one says where it begins"
        await world.control.pause_job(JOBS[0], "ann", "why")
        told = await heard.next("job_changed")
        assert (told.data["job"]["key"], told.data["job"]["paused"]["note"]) == (JOBS[0], "why")
        await world.end((await world.store.get_unfinished((running,)))[0], Outcome.FAILED)
        ended = await heard.next("execution_ended")
        assert (ended.data["execution"]["id"], ended.data["execution"]["outcome"]) == (str(running), "failed")
        assert ended.data["execution"]["output"] == ""
        assert ended.data["execution"]["outputs_hidden"]
        # Who sees nothing of it is only told of the cluster, and of positions.
        assert (await elsewhere.next("cluster_changed")).data["cluster"]["members"]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await elsewhere.next("job_changed", "execution_ended", "execution_started")


async def test_who_comes_back_is_told_what_was_missed_and_nothing_before(rest: Rested, scene: Scene) -> None:
    async with listening(rest, "root") as heard:
        await heard.next()
        await scene.world.control.pause_job(JOBS[0], "ann", "first")
        await heard.next("job_changed")
        last_id = heard.last_id
    await scene.world.control.pause_job(JOBS[1], "ann", "second")
    # The header is newer than what stands in the address.
    async with listening(rest, "root", last_id, "?resume_token=old") as heard:
        told = await heard.next("job_changed")
        assert told.data["job"]["key"] == JOBS[1]
    polled = await poll(rest, "root", last_id)
    assert [each["job"]["key"] for each in polled["events"]] == [JOBS[1]]
    assert not polled["resync"]
    assert (await poll(rest, "root", polled["resume_token"]))["events"] == []
    assert (await poll(rest, "elsewhere", last_id))["events"] == []


@pytest.mark.parametrize("last_id", ["x", "a.b", f"{'A' * 100}.{'B' * 100}", "é"])
async def test_who_comes_back_with_what_is_no_id_is_told_to_read_anew(rest: Rested, last_id: str) -> None:
    async with listening(rest, "root", query=f"?resume_token={last_id}") as heard:
        assert (await heard.next()).name == "resync"
    assert (await poll(rest, "root", last_id))["resync"]


async def test_who_comes_back_too_late_is_told_to_read_anew(
    rest: Rested, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = (await poll(rest, "root"))["resume_token"]
    monkeypatch.setattr(hub, "TOKEN_AGE_MAX_US", 0)
    async with listening(rest, "root", begun) as heard:
        assert (await heard.next()).name == "resync"
        await scene.world.control.pause_job(JOBS[0], "ann", "why")
        assert (await heard.next("job_changed")).data["job"]["key"] == JOBS[0], "it goes on all the same"


async def test_a_namespace_may_be_asked_for(rest: Rested, scene: Scene) -> None:
    async with listening(rest, "root", query="?namespace=hush") as heard:
        await heard.next()
        await scene.world.control.pause_job(JOBS[0], "ann", "why")
        await scene.world.control.pause_job("hush/hush_m.hush_a", "ann", "why")
        assert (await heard.next("job_changed")).data["job"]["key"] == "hush/hush_m.hush_a"
    headers = {"Authorization": "Bearer test-viewer"}
    async with rest.session.get(f"{EVENTS}?namespace=hush", headers=headers) as answer:
        assert answer.status == 403


async def test_a_stream_that_says_nothing_beats(rest: Rested, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cronring.controller.api.rest.streams.BEAT_S", 1.0)
    _, running = scene.billing
    headers = {"Authorization": "Bearer test-root", "Accept": "text/event-stream"}
    path = f"/api/v1/cron/executions/{running}/output"
    async with asyncio.timeout(TIMEOUT_S), rest.session.get(path, headers=headers) as answer:
        assert await answer.content.readline() == b"event: beat\n"
