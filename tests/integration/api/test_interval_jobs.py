"""The interval contract's routes, by everybody: who may, what they read of it, and what is on record."""

from collections.abc import AsyncIterator
from typing import Any, Final

import aiohttp
import pytest

from cronring.controller.api.http import HttpServer
from cronring.controller.api.judging import Verdicts
from cronring.controller.api.web_identity import KnownWeb
from cronring.controller.interval_jobs.settings import interval_settings
from cronring.controller.web import Web
from cronring.schema.module import Module, Verb
from tests.conformance.booked import BookedChange
from tests.conformance.harness import TIMEOUT_MS, PostgresScene
from tests.integration.api.conftest import CALLERS, Filled
from tests.support.callers import counting, judge_of, unlimited
from tests.support.guarded import api_on

VIEWERS: Final = {"viewer", "outputs", "operator", "deployer", "admin", "both", "root"}
OPERATORS: Final = {"operator", "admin", "both", "root"}
WHO: Final = (*CALLERS, "unknown", "")
SITE: Final = "https://ops.example"  # its pages may ask
MADE: Final = {
    "url": "https://a.example", "interval_minutes": 60, "payload": {"card": "4111"}, "metadata": {"card": "4111"}
}  # fmt: skip
# Each route; what it is sent, and who may. {job}: one that is scheduled.
ROUTES: Final[tuple[tuple[str, str, Any, set[str]], ...]] = (
    ("POST", "/jobs", MADE, OPERATORS),
    ("PUT", "/jobs/{job}", {"source_name": "n"}, OPERATORS),
    ("POST", "/jobs/{job}/pause", None, OPERATORS),
    ("POST", "/jobs/{job}/resume", None, OPERATORS),
    ("POST", "/jobs/{job}/retry", None, OPERATORS),
    ("POST", "/jobs/{job}/trigger", None, OPERATORS),
    ("POST", "/jobs/{job}/cancel", None, OPERATORS),
    ("DELETE", "/jobs/{job}", None, OPERATORS),
    ("GET", "/jobs", None, VIEWERS),
    ("GET", "/jobs/{job}", None, VIEWERS),
    ("GET", "/jobs/{job}/executions", None, VIEWERS),
    ("GET", "/jobs/{job}/stats", None, VIEWERS),
    ("GET", "/executions/1", None, VIEWERS),
    ("GET", "/scheduler/metrics", None, VIEWERS),
)


class Asker:
    """As anybody: by tokens of the callers' names."""

    def __init__(self, session: aiohttp.ClientSession, filled: Filled) -> None:
        self.session = session
        self.filled = filled

    async def ask(self, who: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer test-{who}"} if who else {}
        async with self.session.request(method, f"/api/v1{path}", json=body, headers=headers) as answer:
            return answer.status, None if answer.status == 204 else await answer.json(content_type=None)

    async def made(self) -> str:
        status, job = await self.ask("operator", "POST", "/jobs", MADE)
        assert status == 201, job
        return str(job["id"])

    async def changes(self) -> list[BookedChange]:
        scene = self.filled.world.scene
        assert isinstance(scene, PostgresScene)
        return list(await scene.changes())


@pytest.fixture
async def asker(filled: Filled) -> AsyncIterator[Asker]:
    """The façade of namespace billing."""
    module = Module("crawler", (Verb("fetch", request="dict"),), "billing")
    await filled.world.store.create_deployment(module, "c" * 64, 1, TIMEOUT_MS, True)
    web, api = Web((SITE,), interval_jobs=interval_settings("billing/crawler.fetch")), api_on(filled.database)
    web.door.judge = KnownWeb(judge_of(filled.callers), Verdicts([], unlimited()))
    web.serve(api.parts)
    server = HttpServer(lambda: None, lambda: b"", counting([]), web.door, *web.routes, cors=web.cors)
    port = await server.start("127.0.0.1", 0)
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
        yield Asker(session, filled)
    await server.stop()
    await api.close()


@pytest.mark.parametrize(("method", "path", "body", "may"), ROUTES, ids=[f"{each[0]} {each[1]}" for each in ROUTES])
async def test_who_may(asker: Asker, method: str, path: str, body: Any, may: set[str]) -> None:
    for who in WHO:
        before = len(await asker.changes())
        job = await asker.made()
        status, answer = await asker.ask(who, method, path.replace("{job}", job), body)
        if who in may:
            assert status in {200, 201, 204, 404, 409}, (who, answer)
            assert status != 404 or path.startswith("/executions"), (who, answer)
        else:
            assert status == (403 if who in CALLERS else 401), (who, answer)
            assert "card" not in str(answer)
            assert len(await asker.changes()) == before + 2, "what made the job, and nothing else"


async def test_who_may_not_read_outputs(asker: Asker) -> None:
    job = await asker.made()
    for who in sorted(VIEWERS):
        _, shown = await asker.ask(who, "GET", f"/jobs/{job}")
        reads = who not in {"viewer", "deployer"}
        assert (shown["payload"], shown["metadata"]) == ((MADE["payload"], MADE["metadata"]) if reads else (None, {}))
        _, listed = await asker.ask(who, "GET", "/jobs")
        assert listed["jobs"] == [shown]


async def test_what_is_changed_is_on_record(asker: Asker) -> None:
    known = len(await asker.changes())
    job = await asker.made()
    for method, path, body in (
        ("PUT", "", {"interval_minutes": 90, "metadata": {"card": "4222"}}), ("POST", "/pause", None),
        ("POST", "/resume", None), ("POST", "/trigger", None), ("POST", "/cancel", None), ("DELETE", "", None),
    ):  # fmt: skip
        status, answer = await asker.ask("operator", method, f"/jobs/{job}{path}", body)
        assert status in {200, 204}, answer
    found = (await asker.changes())[known:]
    path = f"/api/v1/jobs/{job}"
    assert [change.method for change in found] == [
        "POST /api/v1/jobs", "POST /api/v1/jobs", f"PUT {path}", f"PUT {path}", f"POST {path}/pause",
        f"POST {path}/resume", f"POST {path}/trigger", f"POST {path}/cancel", f"DELETE {path}",
    ]  # fmt: skip
    assert {(change.principal, change.namespace, change.subject) for change in found} == {
        ("token:operator", "billing", f"job billing/crawler.fetch:{job}")
    }
    assert "card" not in str(found)
    assert all(change.origin.startswith("ipv4:127.0.0.1:") for change in found)


async def test_what_is_refused_leaves_nothing(asker: Asker) -> None:
    job = await asker.made()
    known = len(await asker.changes())
    for method, path, body, status in (
        ("POST", "/jobs", {"url": 7}, 422), ("POST", "/jobs", [], 400), ("POST", f"/jobs/{job}/resume", None, 409),
        ("POST", "/jobs/none/pause", None, 404), ("PUT", f"/jobs/{job}", {"max_retries": -1}, 422),
    ):  # fmt: skip
        assert (await asker.ask("operator", method, path, body))[0] == status
    assert len(await asker.changes()) == known


async def test_jobs_of_other_namespaces_are_none_of_its(asker: Asker) -> None:
    for execution_id in (*asker.filled.billing, *asker.filled.hush):
        status, answer = await asker.ask("root", "GET", f"/executions/{execution_id}")
        assert status == 404, answer
    status, answer = await asker.ask("root", "POST", "/jobs", {"verb": "hush/hush_m.hush_a"})
    assert status == 422, answer
    assert "another namespace" in answer["detail"]
