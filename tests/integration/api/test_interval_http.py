"""The interval contract's routes beside REST's own: keys, conditions, other sites' pages, packing, and problems."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from cronring.controller.errors import StoreUnavailable
from cronring.controller.interval_jobs import routes
from cronring.controller.interval_jobs.service import IntervalJobsService
from tests.integration.api.test_interval_jobs import MADE, ROUTES, SITE, Asker, asker
from tests.support.rested import Answer
from tests.support.waiting import TIMEOUT_S, wait_until

__all__ = ["asker"]
JSON: Final = {"application/json", "application/problem+json"}


async def send(asker: Asker, method: str, path: str, body: Any = None, by: str = "operator", **headers: str) -> Answer:
    """`headers`: with _ for -."""
    shown = {"Authorization": f"Bearer test-{by}"} | {name.replace("_", "-"): text for name, text in headers.items()}
    async with asker.session.request(method, f"/api/v1{path}", json=body, headers=shown) as answer:
        return Answer(answer.status, answer.headers, await answer.json() if answer.content_type in JSON else None)


async def jobs(asker: Asker) -> int:
    return int((await send(asker, "GET", "/jobs")).body["total"])


async def test_a_repeated_creation_is_answered_as_before(asker: Asker) -> None:
    first = await send(asker, "POST", "/jobs", MADE, Idempotency_Key="k")
    assert (first.status, "Idempotency-Replayed" in first.headers) == (201, False)
    turned = dict(reversed(MADE.items()))
    again = await send(asker, "POST", "/jobs", turned, Idempotency_Key="k")
    assert (again.status, again.body, again.headers["Idempotency-Replayed"]) == (201, first.body, "true")
    assert again.headers["Location"] == first.headers["Location"] == f"/api/v1/jobs/{first.body['id']}"
    other = await send(asker, "POST", "/jobs", MADE | {"max_retries": 1}, Idempotency_Key="k")
    assert (other.status, other.body["reason"]) == (422, "KEY_REUSED")
    assert (await send(asker, "POST", "/jobs", MADE, "root", Idempotency_Key="k")).body["id"] != first.body["id"]
    assert await jobs(asker) == 2, "keys are of who asks"
    assert (await send(asker, "POST", "/jobs", MADE)).status == 201
    assert (await send(asker, "POST", "/jobs", MADE)).status == 201
    assert await jobs(asker) == 4, "without a key each makes one"


async def test_orders_changes_and_removals_have_keys_too(asker: Asker) -> None:
    job, other = await asker.made(), await asker.made()
    known = len(await asker.changes())
    for method, path, body, status in (
        ("PUT", "", {"max_retries": 1}, 200), ("POST", "/trigger", None, 200), ("POST", "/pause", None, 200),
        ("POST", "/cancel", None, 200), ("DELETE", "", None, 204),
    ):  # fmt: skip
        before = len(await asker.changes())
        first = await send(asker, method, f"/jobs/{job}{path}", body, Idempotency_Key="k")
        assert (first.status, "Idempotency-Replayed" in first.headers) == (status, False), first
        assert len(await asker.changes()) > before
        before = len(await asker.changes())
        again = await send(asker, method, f"/jobs/{job}{path}", body, Idempotency_Key="k")
        assert (again.status, again.body, again.headers["Idempotency-Replayed"]) == (status, first.body, "true")
        reused = await send(asker, method, f"/jobs/{other}{path}", body, Idempotency_Key="k")
        assert (reused.status, reused.body["reason"]) == (422, "KEY_REUSED"), "another job is another request"
        assert len(await asker.changes()) == before
    assert len(await asker.changes()) > known


async def test_of_many_at_once_one_is_made(asker: Asker) -> None:
    answers = await asyncio.gather(*(send(asker, "POST", "/jobs", MADE, Idempotency_Key="k") for _ in range(4)))
    assert {each.status for each in answers} <= {201, 409}
    assert all(each.body["reason"] == "KEY_IN_USE" for each in answers if each.status == 409)
    assert all(each.headers["Retry-After"] == "1" for each in answers if each.status == 409)
    assert await jobs(asker) == 1


async def test_what_was_refused_may_be_asked_again_by_its_key(asker: Asker) -> None:
    job = await asker.made()
    refused = await send(asker, "POST", f"/jobs/{job}/resume", Idempotency_Key="k")
    assert (refused.status, refused.body["code"]) == (409, "FAILED_PRECONDITION")
    assert refused.body["reason"] == "ILLEGAL_TRANSITION"
    await send(asker, "POST", f"/jobs/{job}/pause")

    async def done() -> bool:
        return (await send(asker, "POST", f"/jobs/{job}/resume", Idempotency_Key="k")).status == 200

    await wait_until(done, "the key is still taken")


async def test_keys_and_conditions_are_refused_where_they_would_not_count(asker: Asker) -> None:
    job = await asker.made()
    known = len(await asker.changes())
    for method, path, body, _ in ROUTES:
        here = path.replace("{job}", job)
        answer = await send(asker, method, here, body, If_Match="*")
        assert (answer.status, answer.body["violations"][0]["field"]) == (400, "If-Match"), path
        key = "k" if method == "GET" else "a b"
        answer = await send(asker, method, here, body, Idempotency_Key=key)
        assert (answer.status, answer.body["violations"][0]["field"]) == (400, "Idempotency-Key"), path
    assert len(await asker.changes()) == known


async def test_pages_of_sites_that_are_named_may_ask(asker: Asker) -> None:
    job = await asker.made()
    asks = {"Access-Control-Request-Method": "POST"}
    methods = {
        "/api/v1/jobs": "GET, POST", f"/api/v1/jobs/{job}": "DELETE, GET, PUT", f"/api/v1/jobs/{job}/pause": "POST",
        "/api/v1/scheduler/metrics": "GET", "/api/v1/cron/jobs": "GET, POST", "/api/openapi.json": "GET, HEAD",
        "/api/v1/events": "GET",
    }  # fmt: skip
    for path, allowed in methods.items():
        async with asker.session.options(path, headers={"Origin": SITE, **asks}) as answer:
            assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (204, SITE), path
            assert answer.headers["Access-Control-Allow-Methods"] == allowed
            assert "If-Match" in answer.headers["Access-Control-Allow-Headers"]
        async with asker.session.options(path, headers={"Origin": "https://evil.example", **asks}) as answer:
            assert "Access-Control-Allow-Origin" not in answer.headers
            assert "Access-Control-Allow-Methods" not in answer.headers
    for path in ("/api/v1/jobs", "/api/v1/jobs/none", "/api/v1/nothing", "/api/openapi.json", "/api/"):
        async with asker.session.get(path, headers={"Origin": SITE}) as answer:
            assert answer.headers["Access-Control-Allow-Origin"] == SITE, path
            assert "Access-Control-Allow-Credentials" not in answer.headers
            assert "Origin" in ", ".join(answer.headers.getall("Vary")), path
    for path in ("/login", "/session", "/healthz", "/"):
        async with asker.session.get(path, headers={"Origin": SITE}) as answer:
            assert "Access-Control-Allow-Origin" not in answer.headers, path
        async with asker.session.options(path, headers={"Origin": SITE, **asks}) as answer:
            assert (answer.status, "Access-Control-Allow-Origin" in answer.headers) == (405, False), path


async def test_lists_are_packed_for_those_who_take_that(asker: Asker) -> None:
    for _ in range(3):
        await asker.made()
    for accept, packed in (("gzip", True), ("identity", False)):
        answer = await send(asker, "GET", "/jobs", Accept_Encoding=accept)
        assert (answer.body["total"], answer.headers["Vary"].split(", ")[0]) == (3, "Accept-Encoding")
        assert (answer.headers.get("Content-Encoding") == "gzip") == packed
        assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
        assert answer.headers["Cache-Control"] == "no-store"


REFUSED: Final = [
    ("POST", "/jobs", {"url": 7}, "operator", 422, "INVALID_ARGUMENT", "INVALID"),
    ("POST", "/jobs", [], "operator", 400, "INVALID_ARGUMENT", "INVALID"),
    ("POST", "/jobs", {"url": "x" * 300_000}, "operator", 413, "RESOURCE_EXHAUSTED", "INVALID"),
    ("GET", "/jobs?limit=0", None, "operator", 422, "INVALID_ARGUMENT", "INVALID"),
    ("GET", "/jobs?limt=1", None, "operator", 400, "INVALID_ARGUMENT", "INVALID"),
    ("POST", "/jobs?interval_minutes=5", MADE, "operator", 400, "INVALID_ARGUMENT", "INVALID"),
    ("GET", "/jobs/none", None, "operator", 404, "NOT_FOUND", "NOT_FOUND"),
    ("GET", "/executions/none", None, "operator", 404, "NOT_FOUND", "NOT_FOUND"),
    ("GET", "/jobs", None, "nobody", 401, "UNAUTHENTICATED", "UNAUTHENTICATED"),
    ("POST", "/jobs", MADE, "viewer", 403, "PERMISSION_DENIED", "FORBIDDEN"),
    ("GET", "/nothing", None, "operator", 404, "NOT_FOUND", "NOT_SERVED"),
    ("PATCH", "/jobs", None, "operator", 405, "UNIMPLEMENTED", "NOT_SERVED"),
    ("GET", "/jobs/x/pause", None, "operator", 405, "UNIMPLEMENTED", "NOT_SERVED"),
    ("OPTIONS", "/cron/nothing", None, "operator", 404, "NOT_FOUND", "NOT_SERVED"),
]


async def test_problems_are_those_of_rest(asker: Asker) -> None:
    for method, path, body, by, status, code, reason in REFUSED:
        answer = await send(asker, method, path, body, by)
        found = answer.body
        assert (answer.status, found["status"], found["code"], found["reason"]) == (status, status, code, reason), path
        assert found["type"] == f"urn:cronring:problem:{reason.lower().replace('_', '-')}"
        assert found["instance"] == f"/api/v1{path.partition('?')[0]}"
        assert found["title"]
        assert found["detail"]
        assert answer.headers["Content-Type"] == "application/problem+json; charset=utf-8"
    unfit = await send(asker, "POST", "/jobs", {"url": 7, "max_retries": -1})
    assert [each["field"] for each in unfit.body["violations"]] == ["url", "max_retries"]


async def test_a_parameter_that_a_route_has_not_is_refused(asker: Asker) -> None:
    """It was passed over: a job of `?interval_minutes=5` ran once."""
    job = await asker.made()
    known = len(await asker.changes())
    for method, path, body, _ in ROUTES:
        here = f"{path.replace('{job}', job)}?interval_minutes=5"
        answer = await send(asker, method, here, body)
        assert (answer.status, "'interval_minutes'" in answer.body["detail"]) == (400, True), (method, path)
    assert len(await asker.changes()) == known


async def test_a_body_that_is_packed_is_not_taken(asker: Asker) -> None:
    for method, path in (("POST", "/jobs"), ("PUT", f"/jobs/{await asker.made()}")):
        answer = await send(asker, method, path, MADE, Content_Encoding="gzip")
        assert (answer.status, answer.body["reason"]) == (415, "INVALID")
        assert "send it as it is" in answer.body["detail"]
        assert (await send(asker, method, path, MADE, Content_Encoding="identity")).status < 300


async def test_a_body_that_dribbles_is_given_up(asker: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    async def dribbles() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(TIMEOUT_S)

    monkeypatch.setattr(routes, "BODY_S", 0.05)
    headers = {"Authorization": "Bearer test-operator"}
    async with asyncio.timeout(TIMEOUT_S):
        answer = await asker.session.post("/api/v1/jobs", data=dribbles(), headers=headers)
    found = await answer.json(content_type="application/problem+json")
    assert (answer.status, found["code"], found["reason"]) == (408, "DEADLINE_EXCEEDED", "TOO_SLOW")
    assert "send the request once more" in found["detail"]


async def test_a_change_that_can_t_be_answered_says_that_it_was_done(
    asker: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise StoreUnavailable("gone, after the change")

    monkeypatch.setattr(IntervalJobsService, "get", away)
    answer = await send(asker, "POST", "/jobs", MADE)
    assert (answer.status, answer.body["reason"], answer.body["outcome"]) == (503, "DATABASE_AWAY", "done")
    monkeypatch.undo()
    assert await jobs(asker) == 1


async def test_a_defect_after_the_change_says_that_it_was_done(
    asker: Asker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(routes, "job_body", broken)
    answer = await send(asker, "POST", "/jobs", MADE)
    assert (answer.status, answer.body["reason"], answer.body.get("outcome")) == (500, "UNEXPECTED", "done")
    assert "ZeroDivisionError" in caplog.text
    monkeypatch.undo()
    assert await jobs(asker) == 1


async def test_a_defect_is_a_problem_too(
    asker: Asker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: object) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(IntervalJobsService, "get", broken)
    answer = await send(asker, "GET", "/jobs/x")
    assert (answer.status, answer.body["code"], answer.body["reason"]) == (500, "INTERNAL", "UNEXPECTED")
    assert "outcome" not in answer.body
    assert "a defect" not in json.dumps(answer.body)
    assert "ZeroDivisionError" in caplog.text
