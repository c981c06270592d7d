"""Who may read /metrics, over real HTTP: the same judge as at the door of gRPC, in the words of HTTP."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any, Final

import aiohttp
import pytest

from cronring.controller.api.http import HttpServer
from cronring.controller.api.judging import Known, Verdicts
from cronring.controller.api.login import Login
from cronring.controller.api.throttle import Allowances, Throttle
from cronring.controller.api.web_identity import KnownWeb, LocalWeb, WebDoor
from cronring.controller.config import ConfigError, MetricsAuth, ProcessConfig
from cronring.controller.core.rates import Rate
from cronring.controller.errors import StoreUnavailable
from cronring.schema.identity import Principal, Role, RoleGrant
from tests.support.callers import NamedCallers, counting, no_certificate

GRANTS: Final = {"ann": (RoleGrant(Role.VIEWER),), "bob": (RoleGrant(Role.ADMIN, "billing"),), "carl": ()}


class Served:
    """With two calls at once for each token, and three for a host of strangers. `seen`: how often it showed metrics."""

    def __init__(self, *, metrics_asks: bool = True) -> None:
        self.refused: list[str] = []
        self.seen = 0
        self.callers = NamedCallers(**GRANTS)
        self.metrics_ask, self.door = metrics_asks, WebDoor()
        throttle = Throttle(Allowances(Rate(2, 2), strangers=Rate(1, 3)), lambda: 0)
        self.judge = KnownWeb(Known([self.callers], no_certificate, throttle), Verdicts([], throttle))
        self.session: aiohttp.ClientSession

    def metrics(self) -> bytes:
        self.seen += 1
        return b"cronring_build_info 1\n"

    async def get(self, path: str = "/metrics", *authorization: str) -> tuple[int, Any, Any]:
        headers = [("Authorization", value) for value in authorization]
        async with self.session.get(path, headers=headers) as answer:
            is_json = answer.content_type.endswith("json")
            return answer.status, answer.headers, await (answer.json() if is_json else answer.text())


@contextlib.asynccontextmanager
async def serving(served: Served) -> AsyncIterator[Served]:
    server = HttpServer(
        lambda: None, served.metrics, counting(served.refused), served.door, Login(), metrics_ask=served.metrics_ask
    )
    port = await server.start("127.0.0.1", 0)
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as served.session:
        yield served
    await server.stop()


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serving(Served()) as found:
        found.door.judge = found.judge
        yield found


async def test_who_may_view_everything_reads_metrics(served: Served) -> None:
    status, _, text = await served.get("/metrics", "Bearer test-ann")
    assert (status, text, served.seen) == (200, "cronring_build_info 1\n", 1)


async def test_health_asks_for_nothing(served: Served) -> None:
    for _ in range(10):
        for path in ("/healthz", "/readyz"):
            assert (await served.get(path))[0] == 200


async def test_without_a_token_it_is_401_and_says_what_to_show(served: Served) -> None:
    status, headers, body = await served.get()
    assert (status, headers["WWW-Authenticate"]) == (401, 'Bearer realm="cronring"')
    assert body["detail"].startswith("nobody is logged in; log in at /login, or send `authorization: Bearer TOKEN`")
    assert body["instance"] == "/metrics"
    for wrong in ("Bearer test-gone", "Basic YTpi"):
        status, headers, body = await served.get("/metrics", wrong)
        assert (status, headers["WWW-Authenticate"]) == (401, 'Bearer realm="cronring", error="invalid_token"')
        assert "test-gone" not in str(body)
    assert (served.refused, served.seen) == (["unauthenticated"] * 3, 0)


async def test_two_tokens_are_none(served: Served) -> None:
    assert (await served.get("/metrics", "Bearer test-ann", "Bearer test-bob"))[0] == 401


@pytest.mark.parametrize("who", ["bob", "carl"])
async def test_who_may_view_less_is_told_403(served: Served, who: str) -> None:
    status, headers, body = await served.get("/metrics", f"Bearer test-{who}")
    assert (status, headers["WWW-Authenticate"]) == (403, 'Bearer realm="cronring", error="insufficient_scope"')
    assert body["detail"].startswith("this takes view in all namespaces; token:")
    assert (served.refused, served.seen) == (["forbidden"], 0)


async def test_who_asks_too_often_is_told_429_and_when(served: Served) -> None:
    assert [(await served.get("/metrics", "Bearer test-ann"))[0] for _ in range(2)] == [200, 200]
    status, headers, body = await served.get("/metrics", "Bearer test-ann")
    assert (status, headers["Retry-After"]) == (429, "1")
    assert body["detail"].startswith("token:ann makes too many calls to this controller (--call-rate)")
    assert served.refused == ["rate"]


async def test_wrong_tokens_are_looked_up_so_often_and_no_more(served: Served) -> None:
    statuses = [(await served.get("/metrics", f"Bearer test-{number}"))[0] for number in range(10)]
    assert statuses == [401] * 3 + [429] * 7
    assert len(served.callers.asked) == 3


async def test_before_there_is_a_database_nobody_can_be_known() -> None:
    async with serving(Served()) as found:
        status, headers, body = await found.get("/metrics", "Bearer test-ann")
        assert (status, headers["Retry-After"]) == (503, "5")
        assert "has no connection to PostgreSQL" in body["detail"]
        assert (await found.get("/healthz"))[0] == 200


async def test_while_it_is_away_it_is_503(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(_: str) -> Principal:
        raise StoreUnavailable("away")

    monkeypatch.setattr(served.callers, "principal", away)
    assert (await served.get("/metrics", "Bearer test-ann"))[0] == 503


async def test_without_the_setting_metrics_are_open() -> None:
    async with serving(Served(metrics_asks=False)) as found:
        assert (await found.get())[0] == 200
        found.door.judge = LocalWeb()
        assert (await found.get())[0] == 200
        assert found.seen == 2


def test_insecure_has_no_tokens_to_ask_for() -> None:
    with pytest.raises(ConfigError, match=r"^metrics_auth is token, and with insecure there are no tokens"):
        ProcessConfig("postgresql://", insecure=True, metrics_auth=MetricsAuth.TOKEN)


@pytest.mark.parametrize("field", ["call_rate", "call_burst", "streams"])
@pytest.mark.parametrize("value", [0, -1, 2**31 - 1])
def test_allowances_have_bounds(field: str, value: int) -> None:
    wrong: dict[str, Any] = {field: value}
    with pytest.raises(ConfigError, match=rf"^{field} is {value}; it must be from 1 to"):
        ProcessConfig("postgresql://", insecure=True, **wrong)


@pytest.mark.parametrize("origin", ["*", "https://a.example/", "http://a.example", "https://A.example", "null", ""])
def test_sites_whose_pages_may_ask_are_named_one_by_one(origin: str) -> None:
    with pytest.raises(ConfigError, match=r"^cors_origins is .*; it must be https://HOST"):
        ProcessConfig("postgresql://", insecure=True, cors_origins=("https://ok.example", origin))
    with pytest.raises(ConfigError, match=r"^cors_origins is set with insecure"):
        ProcessConfig("postgresql://", insecure=True, cors_origins=("https://ok.example",))
