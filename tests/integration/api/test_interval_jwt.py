"""The interval contract by JWTs of an issuer: who they say it is may what their groups are given, and is on record."""

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import aiohttp
import pytest

from cronring.controller.api.http import HttpServer
from cronring.controller.api.judging import Known, Verdicts
from cronring.controller.api.web_identity import KnownWeb
from cronring.controller.identity.settings import GrantRule, IssuerSettings
from cronring.controller.identity.verifier import JwtVerifier
from cronring.controller.interval_jobs.settings import interval_settings
from cronring.controller.runtime.clock import SystemClock
from cronring.controller.web import Web
from cronring.schema.identity import Role
from cronring.schema.module import Module, Verb
from tests.conformance.harness import TIMEOUT_MS
from tests.integration.api.conftest import Scene
from tests.support.callers import counting, no_certificate, unlimited
from tests.support.guarded import api_on
from tests.support.issuer import AUDIENCE, TestIssuer

JOB = {"url": "https://a.example", "interval_minutes": 60}
RULES = (
    GrantRule("sre", Role.OPERATOR, "billing", "groups"),
    GrantRule("audit", Role.VIEWER, "billing", "groups"),
    GrantRule("others", Role.ADMIN, "hush", "groups"),
)


class Facade(NamedTuple):
    session: aiohttp.ClientSession
    issuer: TestIssuer
    scene: Scene

    async def ask(self, token: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {token}"}
        async with self.session.request(method, f"/api/v1{path}", json=body, headers=headers) as answer:
            return answer.status, await answer.json(content_type=None)


@pytest.fixture
async def facade(scene: Scene) -> AsyncIterator[Facade]:
    """Of namespace billing."""
    module = Module("crawler", (Verb("fetch", request="dict"),), "billing")
    await scene.world.store.create_deployment(module, "c" * 64, 1, TIMEOUT_MS, True)
    async with TestIssuer() as issuer:
        verifier = JwtVerifier(
            [IssuerSettings("corp", issuer.url, AUDIENCE, issuer.jwks_url, grants=RULES)], SystemClock()
        )
        web, api = Web(interval_jobs=interval_settings("billing/crawler.fetch")), api_on(scene.database)
        web.door.judge = KnownWeb(Known([verifier], no_certificate, unlimited()), Verdicts([], unlimited()))
        web.serve(api.parts)
        server = HttpServer(lambda: None, lambda: b"", counting([]), web.door, *web.routes)
        port = await server.start("127.0.0.1", 0)
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
            yield Facade(session, issuer, scene)
        await server.stop()
        await verifier.close()
        await api.close()


async def test_an_operator_of_the_issuer_makes_a_job_and_is_on_record(facade: Facade) -> None:
    status, job = await facade.ask(facade.issuer.token(), "POST", "/jobs", JOB)
    assert status == 201, job
    status, shown = await facade.ask(facade.issuer.token(groups=["audit"]), "GET", f"/jobs/{job['id']}")
    assert (status, shown["status"]) == (200, "scheduled")
    changes = await facade.scene.world.scene.changes()
    made = [each for each in changes if each.subject == f"job billing/crawler.fetch:{job['id']}"]
    assert {each.principal for each in made} == {"user:corp/ada@example.org"}


@pytest.mark.parametrize(
    ("claims", "status"),
    [
        ({"groups": ["audit"]}, 403),
        ({"groups": ["others"]}, 403),
        ({"groups": []}, 403),
        ({"aud": "another"}, 401),
        ({"exp": 1_000_000_000}, 401),
        ({"iss": "https://elsewhere.example"}, 401),
        ({"sub": None}, 401),
        ({"nbf": 4_000_000_000}, 401),
    ],
)
async def test_whoever_may_not_changes_nothing(facade: Facade, claims: dict[str, Any], status: int) -> None:
    before = len(await facade.scene.world.scene.changes())
    answer = await facade.ask(facade.issuer.token(**claims), "POST", "/jobs", JOB)
    assert (answer[0], answer[1]["status"]) == (status, status), answer
    assert len(await facade.scene.world.scene.changes()) == before


async def test_a_key_that_the_issuer_does_not_publish_signs_nothing(facade: Facade) -> None:
    token = facade.issuer.token()
    facade.issuer.rotate("second")
    status, problem = await facade.ask(token, "GET", "/jobs")
    assert (status, problem["status"]) == (401, 401)
    unsigned = token.rpartition(".")[0] + "."
    assert (await facade.ask(unsigned, "GET", "/jobs"))[0] == 401
    assert (await facade.ask(facade.issuer.token(), "GET", "/jobs"))[0] == 200


async def test_while_the_issuer_is_away_it_is_no_refusal(facade: Facade) -> None:
    token = facade.issuer.token()
    await facade.issuer.stop()
    status, problem = await facade.ask(token, "GET", "/jobs")
    assert (status, "can't be fetched now" in problem["detail"]) == (503, True), problem
