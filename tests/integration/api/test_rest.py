"""REST on real HTTP and PostgreSQL: what it answers, whom it lets in, and what it refuses."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, Final
from urllib.parse import quote

import pytest

from cronring.controller.api.cookies import SESSION
from cronring.controller.api.rest import routes
from cronring.controller.api.same_site import csrf_token
from cronring.controller.ports.identity import TokenRefused
from cronring.schema.identity import Kind, Principal, Role, RoleGrant
from tests.integration.api.conftest import CALLERS, Scene
from tests.support.callers import NamedCallers, judge_of
from tests.support.rested import CRON, Rested, rested
from tests.support.waiting import TIMEOUT_S, wait_until

KEY: Final = "billing/xm.xa"
JOB: Final = f"/jobs/{quote(KEY, safe='')}"
COOKIE: Final = "crs_mine"
MINE: Final = {"Cookie": f"{SESSION}={COOKIE}"}


class Cookies:
    """A Verifier of one session: an operator's."""

    def knows(self, token: str) -> bool:
        return token.startswith("crs_")

    async def principal(self, token: str) -> Principal:
        if token != COOKIE:
            raise TokenRefused("this session has ended")
        return Principal(Kind.USER, "corp/ann", (RoleGrant(Role.OPERATOR, "billing"),))


@pytest.fixture
async def rest(scene: Scene) -> AsyncIterator[Rested]:
    async with rested(scene.database, judge_of(NamedCallers(**CALLERS)), (Cookies(),)) as found:
        yield found


async def test_a_job_is_made_changed_and_removed(rest: Rested) -> None:
    made = await rest.ask(
        "POST", "/jobs",
        {"namespace": "billing", "module": "xm", "verb": "xa", "name": "n", "spec": {"schedule": "every 1h"}},
        by="operator",
    )  # fmt: skip
    assert (made.status, made.body["key"], made.body["schedule"]) == (201, f"{KEY}:n", "every 1h")
    path = f"/jobs/{quote(made.body['key'], safe='')}"
    changed = await rest.ask("PATCH", path, {"spec": {"timeout_ms": 7_000}, "update_mask": "timeout_ms"})
    assert (changed.status, changed.body["timeout_ms"]) == (200, "7000")
    paused = await rest.ask("POST", f"{path}/pause", {"note": "wait"})
    assert (paused.status, paused.body["status"], paused.body["paused"]["note"]) == (200, "paused", "wait")
    resumed = await rest.ask("POST", f"{path}/resume")
    assert resumed.status == 200, "a body of nothing is one"
    gone = await rest.ask("DELETE", f"{path}?note=enough")
    assert (gone.status, gone.body) == (204, b"")
    again = await rest.ask("GET", path)
    assert (again.status, again.body["reason"], again.headers["Content-Type"]) == (
        404, "NOT_FOUND", "application/problem+json; charset=utf-8",
    )  # fmt: skip
    actions = await rest.ask("GET", f"/actions?page_size=2&job={quote(made.body['key'])}")
    assert [(each["action"], each["actor"], each["note"]) for each in actions.body["actions"]] == [
        ("delete", "token:root", "enough"), ("resume", "token:root", ""),
    ]  # fmt: skip


async def test_only_what_was_made_is_created(rest: Rested) -> None:
    def new(name: str, **spec: Any) -> dict[str, Any]:
        return {"namespace": "billing", "module": "xm", "verb": "xa", "name": name, "spec": {"schedule": "1h"} | spec}

    async def made(*jobs: dict[str, Any], **how: bool) -> tuple[int, int]:
        answer = await rest.ask("POST", "/jobs:create", {"jobs": jobs, **how}, by="operator")
        return answer.status, answer.body["changed"]

    good, bad = new("a"), new("b", schedule="never")
    assert await made(good, bad, all_or_nothing=True) == (200, 0)
    assert await made(bad) == (200, 0)
    assert await made(good, dry_run=True) == (200, 1)
    assert await made(good, bad) == (201, 1)
    assert await made(new("c"), all_or_nothing=True) == (201, 1)


async def test_lists_go_on_by_their_tokens_and_filters_are_in_the_query(rest: Rested) -> None:
    found: list[str] = []
    token = ""
    while True:
        page = await rest.ask("GET", f"/jobs?page_size=1&filter.namespace=billing&page_token={token}")
        found += [job["key"] for job in page.body["jobs"]]
        token = page.body["next_page_token"]
        if not token:
            break
    assert found == [KEY, "billing/xm.xb", "billing/xm.xc"]
    paused = await rest.ask("GET", "/jobs?filter.statuses=paused&filter.namespace=billing")
    assert [job["key"] for job in paused.body["jobs"]] == ["billing/xm.xc"]
    nothing = await rest.ask("GET", "/jobs?filter.labels.team=core")
    assert nothing.body == {"jobs": [], "next_page_token": ""}


REFUSED: Final[list[tuple[str, str, str, int, str]]] = [
    ("GET", JOB, "", 401, "UNAUTHENTICATED"),
    ("GET", JOB, "elsewhere", 404, "NOT_FOUND"),
    ("GET", JOB, "viewer", 200, ""),
    ("POST", f"{JOB}/pause", "viewer", 403, "FORBIDDEN"),
    ("DELETE", JOB, "operator", 409, "CONFLICT"),
    ("GET", "/doctor/database", "admin", 403, "FORBIDDEN"),
    ("GET", "/tokens", "viewer", 403, "FORBIDDEN"),
    ("GET", "/whoami", "viewer", 200, ""),
    ("DELETE", "/tokens/none", "root", 404, "NOT_FOUND"),
    ("GET", "/jobs?page_size=0", "root", 400, "INVALID"),
    ("GET", "/executions/x", "root", 400, "INVALID"),
    ("GET", "/executions/99999999999999999999", "root", 400, "INVALID"),
    ("GET", "/nothing", "root", 404, "NOT_SERVED"),
    ("PUT", "/jobs", "root", 405, "NOT_SERVED"),
]


async def test_refusals_are_those_of_grpc_as_problems(rest: Rested) -> None:
    for method, path, by, status, reason in REFUSED:
        answer = await rest.ask(method, path, {} if method == "POST" else None, by=by)
        assert answer.status == status, (method, path, by, answer.body)
        if status >= 400:
            assert answer.body["status"] == status
            assert answer.body["title"]
            assert answer.body["detail"]
            assert answer.body.get("reason", "") == reason
            assert answer.body["instance"] == CRON + path.partition("?")[0].replace("%2F", "/")
        if status == 401:
            assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert rest.refused.count("unauthenticated") == 1


WRONG: Final[list[tuple[str, bytes, str, str]]] = [
    ("unknown field", b'{"nme": "x"}', "nme", "is no field here; there are namespace, module"),
    ("camel case", b'{"requestedBy": "x"}', "requestedBy", "is no field here"),
    ("unknown inside", b'{"spec": {"polcy": {}}}', "spec.polcy", "is no field here; there are schedule"),
    ("a list for a text", b'{"verb": []}', "verb", "must be a text"),
    ("a number for a text", b'{"verb": 1}', "verb", "must be a text"),
    ("a text for an object", b'{"spec": "x"}', "spec", "must be an object"),
    ("an object for a list", b'{"spec": {"policy": {"retry_on": {}}}}', "spec.policy.retry_on", "must be a list"),
    ("inside a list", b'{"spec": {"policy": {"retry_on": ["a", 1]}}}', "spec.policy.retry_on[1]", "must be a text"),
    ("inside a map", b'{"spec": {"labels": {"a": 1}}}', "spec.labels.a", "must be a text"),
    ("true for a number", b'{"spec": {"timeout_ms": true}}', "spec.timeout_ms", "must be a whole number"),
    ("a fraction", b'{"spec": {"timeout_ms": 1.5}}', "spec.timeout_ms", "must be a whole number"),
    ("too large", b'{"spec": {"timeout_ms": 9223372036854775808}}', "spec.timeout_ms", "must be from"),
    ("far too large", b'{"spec": {"timeout_ms": %s}}' % (b"9" * 5_000), "spec.timeout_ms", "must be a whole number"),
    ("no instant", b'{"spec": {"anchor": "yesterday"}}', "spec.anchor", "must be an instant of RFC 3339"),
    ("no day", b'{"spec": {"anchor": "2026-02-31T00:00:00Z"}}', "spec.anchor", "must be an instant of RFC 3339"),
    ("half a pair as a name", b'{"\\ud800": 1}', "\\ud800", "is no field here"),
    ("half a pair in a map", b'{"spec": {"labels": {"\\ud800": "x"}}}', "spec.labels.\\ud800", "surrogate pair"),
    ("half a pair", b'{"verb": "\\ud800"}', "verb", "half of a surrogate pair"),
    ("over its cap", b'{"verb": "%s"}' % (b"x" * 500), "verb", "at most"),
]
TEXTS: Final[list[tuple[str, bytes, str]]] = [
    ("twice", b'{"verb": "a", "verb": "b"}', "'verb' is given twice in one object"),
    ("NaN", b'{"verb": NaN}', "NaN is no number of JSON"),
    ("no object", b"[1]", "is no JSON object"),
    ("no JSON", b'{"verb": "a",}', "is no JSON"),
    ("two", b"{} {}", "is no JSON"),
    ("no UTF-8", b'{"verb": "\xff"}', "is no UTF-8: byte 10 can't be read"),
    ("deep", b'{"spec": ' + b"[" * 40 + b"]" * 40 + b"}", "nests deeper than 32"),
    ("far too deep", b"[" * 200_000, "nests deeper than 32"),
]


@pytest.mark.parametrize(("_", "raw", "field", "says"), WRONG, ids=[row[0] for row in WRONG])
async def test_what_is_wrong_in_a_body_is_named(rest: Rested, _: str, raw: bytes, field: str, says: str) -> None:
    answer = await rest.send("POST", "/jobs", raw)
    assert answer.status == 400, answer.body
    assert answer.body["violations"][0]["field"] == field
    assert says in answer.body["violations"][0]["description"]
    assert rest.refused == ["request"]


@pytest.mark.parametrize(("_", "raw", "says"), TEXTS, ids=[row[0] for row in TEXTS])
async def test_what_is_no_body_is_told_so(rest: Rested, _: str, raw: bytes, says: str) -> None:
    answer = await rest.send("POST", "/jobs", raw)
    assert (answer.status, answer.body["code"]) == (400, "INVALID_ARGUMENT")
    assert says in answer.body["detail"]


async def test_a_body_is_bounded_before_it_is_parsed_and_a_stranger_s_is_not_read(rest: Rested) -> None:
    large = b'{"note": "' + b"x" * 200_000 + b'"}'
    answer = await rest.send("POST", f"{JOB}/pause", large)
    assert (answer.status, "131072 bytes" in answer.body["detail"]) == (413, True)
    async with asyncio.timeout(TIMEOUT_S):
        refused = await rest.session.post(
            f"{CRON}{JOB}/pause", data=_never_ends(), headers={"Content-Type": "application/json"}
        )
    assert refused.status == 401


async def _never_ends() -> AsyncIterator[bytes]:
    yield b"{"
    await asyncio.sleep(TIMEOUT_S)


async def test_other_kinds_of_bodies_are_not_taken(rest: Rested) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1"):
        answer = await rest.send("POST", f"{JOB}/pause", b'{"note": "x"}', kind)
        assert answer.status == 415, kind
    packed = await rest.ask("POST", f"{JOB}/pause", {"note": "x"}, headers={"Content-Encoding": "gzip"})
    assert packed.status == 415
    with_body = await rest.ask("DELETE", JOB, {"note": "x"})
    assert (with_body.status, "takes no body" in with_body.body["detail"]) == (400, True)


async def test_a_change_whose_answer_is_broken_says_that_it_was_done(
    rest: Rested, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It said nothing, which means that nothing was changed."""

    def broken(_: object) -> bytes:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(routes, "json_of", broken)
    paused = await rest.ask("POST", f"{JOB}/pause", {"note": "x"})
    assert (paused.status, paused.body["reason"], paused.body.get("outcome")) == (500, "UNEXPECTED", "done")
    read = await rest.ask("GET", JOB)
    assert (read.status, "outcome" in read.body) == (500, False)
    monkeypatch.undo()
    assert (await rest.ask("GET", JOB)).body["status"] == "paused"


async def test_queries_are_as_strict_as_bodies(rest: Rested) -> None:
    for query, field, says in (
        ("page_size=1&page_size=2", "page_size", "is given twice"),
        ("pageSize=1", "pageSize", "is no field here"),
        ("filter=x:y", "filter.text", "x"),
        ("filter.nothing=x", "filter.nothing", "is no field here"),
        ("filter.status.x=x", "filter.status.x", "is no field here"),
        ("page_size=x", "page_size", "must be a whole number"),
    ):
        answer = await rest.ask("GET", f"/jobs?{query}")
        assert answer.status == 400, query
        assert answer.body["violations"][0]["field"] == field
        assert says in answer.body["violations"][0]["description"]
    posted = await rest.ask("POST", f"{JOB}/pause?note=x", {})
    assert posted.body["violations"] == [{"field": "note", "description": "belongs into the body, not into the query"}]
    named = await rest.ask("POST", f"{JOB}/pause", {"key": KEY})
    assert "stands in the path already" in named.body["violations"][0]["description"]


async def test_sessions_ask_by_their_cookie_and_change_by_its_csrf_token(rest: Rested) -> None:
    seen = await rest.ask("GET", JOB, by="", headers=MINE)
    assert seen.status == 200
    forged = await rest.ask("POST", f"{JOB}/pause", {}, by="", headers=MINE)
    assert (forged.status, "X-CSRF-Token" in forged.body["detail"]) == (403, True)
    paused = await rest.ask("POST", f"{JOB}/pause", {}, by="", headers=MINE | {"X-CSRF-Token": csrf_token(COOKIE)})
    assert (paused.status, paused.body["paused"]["by"]) == (200, "user:corp/ann")


async def test_streams_are_lines_or_events(rest: Rested) -> None:
    headers = {"Authorization": "Bearer test-viewer"}
    async with asyncio.timeout(TIMEOUT_S), rest.session.get(f"{CRON}/jobs:watch", headers=headers) as lines:
        assert lines.content_type == "application/x-ndjson"
        kinds = [json.loads(await lines.content.readline())["kind"] for _ in range(4)]
    assert kinds == ["KIND_PRESENT"] * 3 + ["KIND_LISTED"]
    headers["Accept"] = "text/event-stream"
    async with asyncio.timeout(TIMEOUT_S), rest.session.get(f"{CRON}/jobs:watch", headers=headers) as events:
        assert events.content_type == "text/event-stream"
        first = await events.content.readuntil(b"\n\n")
        assert json.loads(first.removeprefix(b"event: present\ndata: "))["job"]["key"] == KEY
    refused = await rest.ask("GET", "/jobs:watch?resume_token=x", by="viewer")
    assert (refused.status, refused.body["violations"][0]["field"]) == (400, "resume_token")


async def test_an_ended_stream_ends(rest: Rested, scene: Scene) -> None:
    ended, _ = scene.billing
    answer = await rest.ask("GET", f"/executions/{ended}/output", by="outputs")
    assert answer.status == 200
    last: Any = json.loads(answer.body.splitlines()[-1])
    assert last["execution"]["outcome"] == "completed"
    hidden = await rest.ask("GET", f"/executions/{ended}/output", by="viewer")
    assert hidden.status == 403


async def test_with_insecure_whoever_is_local_may_and_pages_of_others_may_not(scene: Scene) -> None:
    async with rested(scene.database, None) as rest:
        assert (await rest.ask("GET", JOB, by="")).status == 200
        paused = await rest.ask("POST", f"{JOB}/pause", {"requested_by": "ann"}, by="")
        assert paused.body["paused"]["by"] == "ann"
        for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}):
            answer = await rest.ask("POST", f"{JOB}/resume", {}, by="", headers=headers)
            assert (answer.status, answer.body["reason"]) == (403, "FORBIDDEN")


async def test_answers_are_packed_for_those_who_take_that(rest: Rested) -> None:
    for accept, packed in (
        ("gzip", True), ("br, gzip;q=0.5", True), ("*", True), ("identity", False), ("gzip;q=0", False),
        ("gzip;q=0, *", False), ("gzip;q=x", False), ("xgzip", False),
    ):  # fmt: skip
        for path, large in (("/jobs", True), ("/whoami", False)):
            answer = await rest.ask("GET", path, headers={"Accept-Encoding": accept})
            assert (answer.status, answer.headers["Vary"]) == (200, "Accept-Encoding")
            assert (answer.headers.get("Content-Encoding") == "gzip") == (packed and large), (accept, path)
        async with rest.session.get("/api/openapi.json", headers={"Accept-Encoding": accept}) as document:
            assert (document.headers.get("Content-Encoding") == "gzip") == packed
            assert (await document.json())["openapi"] == "3.1.0"
    secret = {"name": "t", "grants": [{"role": "viewer", "namespace": f"billing{number}"} for number in range(20)]}
    made = await rest.ask("POST", "/tokens", secret, headers={"Accept-Encoding": "gzip"})
    assert (made.status, "Content-Encoding" in made.headers) == (201, False), "nobody learns by length"


async def test_pages_of_other_sites_ask_only_where_that_is_allowed(rest: Rested, scene: Scene) -> None:
    site, asks = "https://ops.example", {"Access-Control-Request-Method": "POST"}
    async with rest.session.options(f"{CRON}/jobs", headers={"Origin": site, **asks}) as answer:
        assert (answer.status, "Access-Control-Allow-Origin" in answer.headers) == (405, False), "off by default"
    assert "Access-Control-Allow-Origin" not in (await rest.ask("GET", "/jobs", headers={"Origin": site})).headers
    judge = judge_of(NamedCallers(**CALLERS))
    async with rested(scene.database, judge, (Cookies(),), cors_origins=(site,)) as opened:
        async with opened.session.options(f"{CRON}/jobs", headers={"Origin": site, **asks}) as answer:
            assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (204, site)
            assert answer.headers["Access-Control-Allow-Methods"] == "GET, POST"
            assert "Authorization" in answer.headers["Access-Control-Allow-Headers"]
            assert "Access-Control-Allow-Credentials" not in answer.headers
        for path, status in (("/jobs", 200), ("/jobs/x.y", 404), ("/jobs?x=1", 400)):
            found = await opened.ask("GET", path, headers={"Origin": site})
            assert (found.status, found.headers["Access-Control-Allow-Origin"]) == (status, site)
            assert "Origin" in found.headers.getall("Vary")
        for other in ("https://ops.example:444", "http://ops.example", "null", "https://evil.example"):
            async with opened.session.options(f"{CRON}/jobs", headers={"Origin": other, **asks}) as answer:
                assert "Access-Control-Allow-Origin" not in answer.headers
            assert (
                "Access-Control-Allow-Origin"
                not in (await opened.ask("GET", "/jobs", headers={"Origin": other})).headers
            )
        async with opened.session.get(
            f"{CRON}/jobs:watch", headers={"Origin": site, "Authorization": "Bearer test-root"}
        ) as stream:
            assert stream.headers["Access-Control-Allow-Origin"] == site
        forged = await opened.ask("POST", f"{JOB}/pause", {}, by="", headers=MINE | {"Origin": site})
        assert forged.status == 403, "its pages get nothing by a cookie"


async def test_so_many_at_once_and_health_is_answered_all_the_same(
    rest: Rested, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cronring.controller.api.rest.routes.STREAMS_MAX", 2)
    monkeypatch.setattr("cronring.controller.api.rest.routes.REQUESTS_MAX", 1)
    headers = {"Authorization": "Bearer test-viewer"}
    async with rest.session.get(f"{CRON}/jobs:watch", headers=headers) as first:
        await first.content.readline()
        async with rest.session.get("/api/v1/events", headers=headers) as second:
            await second.content.readline()
            third = await rest.ask("GET", "/jobs:watch")
            assert (third.status, third.body["reason"], third.headers["Retry-After"]) == (503, "BUSY", "5")
            assert (await rest.ask("GET", "/jobs")).status == 200, "streams take no place of requests"
            async with rest.session.get("/healthz") as alive:
                assert alive.status == 200
    with_body = headers | {"Authorization": "Bearer test-root", "Content-Type": "application/json"}
    slow: list[asyncio.Future[Any]] = []

    async def full() -> bool:
        if not slow or slow[-1].done():  # it came while another one was answered, and was refused
            posting = rest.session.post(f"{CRON}{JOB}/pause", data=_never_ends(), headers=with_body)
            slow.append(asyncio.ensure_future(posting))
            return False
        return (await rest.ask("GET", "/jobs")).status == 503

    await wait_until(full, "a slow body takes a place")
    slow[-1].cancel()

    async def free() -> bool:
        return (await rest.ask("GET", "/jobs")).status == 200

    await wait_until(free, "whoever hangs up gives it back")
