"""Browsers at two real controllers with certificates: a login at an issuer, sessions that end, PostgreSQL that goes."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cronring.client import AsyncClient
from cronring.client.identities import LoggedIn, RoleIn
from tests.support.cluster import free_port
from tests.support.databases import PostgresServer, running_server
from tests.support.issuer import CLIENT_ID, TestIssuer
from tests.support.secured import SecuredCluster
from tests.support.waiting import wait_until
from tests.support.web_browser import Browser

IDENTITY = """
[[issuer]]
name = "corp"
issuer = "{url}"
audience = "cronring"
jwks_url = "{url}/keys"

[issuer.login]
client_id = "{client_id}"
client_secret_file = "corp.secret"

[[issuer.grant]]
claim = "groups"
value = "sre"
role = "viewer"
namespace = "billing"
"""


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with running_server("postgres18") as made:
        yield made


@pytest.fixture
def cluster(server: PostgresServer, tmp_path: Path) -> Iterator[SecuredCluster]:
    with SecuredCluster(server.url(server.create_database()), tmp_path) as made:
        made.migrate()
        made.let_in()
        yield made


async def started(cluster: SecuredCluster, issuer: TestIssuer) -> tuple[str, str]:
    """Two controllers' URLs. Browsers find both by the first one."""
    identity = cluster.folder / "identity.toml"
    identity.write_text(IDENTITY.format(url=issuer.url, client_id=CLIENT_ID))
    (cluster.folder / "corp.secret").write_text("of corp\n")
    issuer.client_secret = "of corp"
    addresses = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    bases = [f"https://{each}" for each in addresses]
    for http in addresses:
        more = ("--identity-file", str(identity), "--public-url", bases[0], "--http", http)
        cluster.start_controller(*more, wait=False).http = http
    await asyncio.gather(*(asyncio.to_thread(cluster.wait_ready, each) for each in cluster.controllers))
    return bases[0], bases[1]


async def gone(browser: Browser, base: str) -> dict[str, Any]:
    """What /session says, once it knows nobody there any more."""
    said: dict[str, Any] = {}

    async def refused() -> bool:
        said.update(await browser.who(base))
        return bool(said["status"] == 401)

    await wait_until(refused, lambda: f"it goes on: {said}")
    return said


@pytest.mark.timeout(200)
async def test_browsers_at_real_controllers(cluster: SecuredCluster, server: PostgresServer) -> None:
    admin = cluster.environment["CRONRING_TOKEN"]
    async with TestIssuer() as issuer, Browser(cluster.pki.ca) as ada, Browser(cluster.pki.ca) as me:
        first, second = await started(cluster, issuer)
        back = await ada.come_back(first, "corp", "?next=/session")
        assert (await ada.get(back.replace(first, second))).to == "/session", "another controller takes the answer"
        who = await ada.who(first)
        assert (who["name"], who["grants"]) == ("corp/ada@example.org", [{"role": "viewer", "namespace": "billing"}])
        async with AsyncClient(
            cluster.addresses.split(","), 30, token=admin, ca=cluster.pki.ca, insecure=False
        ) as client:
            mine = (await client.identities.create_token("me", [RoleIn("operator")])).secret
            assert (await me.type_token(second, mine)).status == 303
            session, other = await client.identities.sessions()
            assert (session.principal, session.issuer, session.origin) == (
                "user:corp/ada@example.org",
                "corp",
                "127.0.0.1",
            )
            assert (other.principal, other.issuer) == ("token:me", "")
            async with AsyncClient(
                [cluster.controllers[0].grpc], 30, token=mine, ca=cluster.pki.ca, insecure=False
            ) as own:
                assert [each.principal for each in await own.identities.sessions()] == ["token:me"]
            ended = await asyncio.to_thread(cluster.ask, "session", "revoke", str(session.id), "--as", "ann")
            assert f"the session {session.id} of user:corp/ada@example.org has ended" in ended.stdout
            assert "somebody ended it, or you logged out" in (await gone(ada, first))["detail"]
            await client.identities.revoke_token("me")
            assert "the token that you logged in by was revoked" in (await gone(me, second))["detail"]
            rows: list[LoggedIn] = await client.identities.sessions(with_ended=True)
            assert [(row.ended, row.revoked_by) for row in rows] == [
                ("revoked", "token:tests"),
                ("token_revoked", ""),
            ]
        assert (await ada.log_in(first, "corp")).status == 303
        assert (await ada.who(first))["status"] == 200
        server.stop()
        assert (await ada.who(first))["status"] == 200, "it was vouched for within the last minute"
        shown = await me.type_token(second, admin)
        assert (shown.status, "Not now" in shown.text) == (503, True)
    for each in cluster.controllers:
        assert "Traceback" not in each.log.read_text(), each.tail()
        assert mine not in each.log.read_text()
