"""/api/v1/events through a connection that dies at every point: nothing is missed, and nothing told twice."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from cronring.controller.api import events, watch_executions
from cronring.controller.core.model import Execution
from cronring.schema.execution import Outcome
from tests.integration.api.conftest import Scene
from tests.integration.api.test_events import JOBS, Heard, listening, poll
from tests.support.rested import Rested
from tests.support.waiting import TIMEOUT_S

RUNS = 30
STATES = {"job_changed", "job_removed"}  # they may be merged, but are not told twice


def what(name: str, data: Any) -> tuple[str, str]:
    return name, str(data["job"]) if "job" in data else data["execution"]["id"]


def what_polled(event: Any) -> tuple[str, str]:
    return what(event["kind"].removeprefix("KIND_").lower(), event)


async def happen(scene: Scene) -> tuple[set[tuple[str, str]], Execution]:
    """Runs start, some of them end. What is to be told of executions, and one that goes on."""
    runs = await scene.world.running("c1", *(f"n{number}" for number in range(RUNS)))
    ended = runs[::3]
    for run in ended:
        await scene.world.end(run, Outcome.COMPLETED)
    started = {("execution_started", str(run.execution_id)) for run in runs}
    return started | {("execution_ended", str(run.execution_id)) for run in ended}, runs[1]


async def frames(rest: Rested, last_id: str, count: int) -> tuple[list[Heard], str]:
    """So many events of jobs and executions, and the id that a browser has then."""
    async with listening(rest, "root", last_id) as heard:
        found = [
            await heard.next("execution_started", "execution_ended", *STATES, "resync") for _ in range(count)
        ]  # fmt: skip
        return found, heard.last_id or last_id


@pytest.mark.parametrize("part", [1, 7, 128])
async def test_it_may_be_cut_behind_each_event(
    part: int, rest: Rested, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_executions, "PART", part)
    async with listening(rest, "root") as heard:
        last_id = (await heard.next()).id
    wanted, running = await happen(scene)
    told: list[tuple[str, str]] = []
    async with asyncio.timeout(2 * TIMEOUT_S):
        while not wanted <= set(told):
            # Cut behind one, or behind some of the next part.
            found, last_id = await frames(rest, last_id, 1 + len(told) % 3)
            told += [what(each.name, each.data) for each in found]
            if len(told) == RUNS:  # and the world goes on meanwhile
                await scene.world.control.pause_job(JOBS[0], "ann", "why")
                await scene.world.end(running, Outcome.FAILED)
                wanted |= {("execution_ended", str(running.execution_id))}
    assert {each: count for each, count in Counter(told).items() if count > 1} == {}
    assert {each for each in told if each[0] not in STATES} == wanted
    assert any("'why'" in of and JOBS[0] in of for _, of in told), "the pause was told"
    polled = await poll(rest, "root", last_id)
    more = {what_polled(each) for each in polled["events"]}
    assert not more & set(told)


async def test_a_job_that_is_again_as_it_was_is_told_again(rest: Rested, scene: Scene) -> None:
    """What was told beyond an id is no news once, not for ever."""
    control = scene.world.control
    async with listening(rest, "root") as heard:
        begun = (await heard.next()).id
    await control.pause_job(JOBS[0], "ann", "why")
    await control.pause_job(JOBS[1], "ann", "why")
    found, last_id = await frames(rest, begun, 1)
    async with listening(rest, "root", last_id) as heard:
        found.append(await heard.next("job_changed"))
        assert {each.data["job"]["key"] for each in found} == set(JOBS[:2])
        for key in JOBS[:2]:
            await control.resume_job(key, "ann")
            assert "paused" not in (await heard.next("job_changed")).data["job"]
            await control.pause_job(key, "ann", "why")
            assert (await heard.next("job_changed")).data["job"]["paused"]["note"] == "why"


async def test_polls_go_on_where_a_page_ended(rest: Rested, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_executions, "PART", 4)
    monkeypatch.setattr(events, "PAGE_MAX", 40)
    token = (await poll(rest, "root"))["resume_token"]
    wanted, _ = await happen(scene)
    told: list[tuple[str, str]] = []
    for _ in range(RUNS):
        page = await poll(rest, "root", token)
        assert not page["resync"]
        assert len(page["events"]) <= 40 + 2 * 4
        told += [what_polled(each) for each in page["events"]]
        token = page["resume_token"]
    assert {each: count for each, count in Counter(told).items() if count > 1} == {}
    assert {each for each in told if each[0] not in STATES} == wanted
    monkeypatch.setattr(events, "PAGE_MAX", 1)
    for key in JOBS[:2]:
        await scene.world.control.pause_job(key, "ann", "why")
    assert (await poll(rest, "root", token))["resync"], "more jobs than an answer may have"


async def test_more_runs_than_a_token_can_hold_lose_nothing(
    rest: Rested, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = (await poll(rest, "root"))["resume_token"]
    wanted, _ = await happen(scene)
    monkeypatch.setattr("cronring.controller.api.trails._LENGTH_MAX", 20)
    for _ in range(2):
        page = await poll(rest, "root", token)
        told = {what_polled(each) for each in page["events"]}
        assert {each for each in told if each[0] not in STATES} == wanted
        assert page["resume_token"] == token, "they come again"
    async with rest.session.get("/api/v1/events:poll", headers={"Authorization": "Bearer test-root"}) as answer:
        problem = await answer.json()
        assert (answer.status, problem["reason"]) == (429, "TOO_MANY")
    found, last_id = await frames(rest, token, len(wanted))
    assert last_id == token
    assert {what(each.name, each.data) for each in found} & wanted
