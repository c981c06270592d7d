"""Every route of HTTP, asked by those who prove nothing. Who is known: tests/unit/shell/test_web_identity.py."""

import re
import ssl
from pathlib import Path
from typing import Final

import aiohttp
import pytest

from cronring.controller.api.rest.bindings import bindings
from cronring.controller.console import routes
from cronring.controller.console.routes import FILES_PATH, PAGES
from cronring.controller.store.pool import Database
from tests.integration.api.visitors import Visiting, Visitor
from tests.support.listening import listening
from tests.support.secured import Pki

STATIC: Final = Path(routes.__file__).parent / "static"
# What a stranger hears, whatever they show. They tell of no job.
ROUTES: Final = {
    "/healthz": 200, "/readyz": 200, "/metrics": 200, "/login": 200, "/login.css": 200, "/session": 401,
    "/login/{issuer}": 404, "/login/callback/{issuer}": 404, "/login/link": 404, "/login/link/{code}": 400,
    "/logout": 405,
    "/api/": 200, "/api/openapi.json": 200, "/api/page.js": 200, "/api/page.css": 200, "/api/icon.svg": 200,
    "/api/v1/jobs": 401, "/api/v1/jobs/{id}": 401, "/api/v1/jobs/{id}/executions": 401, "/api/v1/jobs/{id}/stats": 401,
    "/api/v1/jobs/{id}/pause": 405, "/api/v1/jobs/{id}/resume": 405, "/api/v1/jobs/{id}/cancel": 405,
    "/api/v1/jobs/{id}/retry": 405, "/api/v1/jobs/{id}/trigger": 405, "/api/v1/executions/{id}": 401,
    "/api/v1/scheduler/metrics": 401,
}  # fmt: skip


async def test_a_stranger_hears_the_same_whatever_they_show(database_url: str, tmp_path: Path) -> None:
    database = await Database.open(database_url, "cronring test")
    visiting = Visiting(database, Pki(tmp_path / "pki"), tmp_path)
    strangers = await visiting.strangers() | visiting.uncertified()
    async with listening(database, visiting.pki, None) as opened:
        read = {each.path for each in bindings() if each.verb == "GET"}
        console = dict.fromkeys(PAGES, 200) | {f"{FILES_PATH}/{{version}}/{{name}}": 404}
        kinds = {file.suffix: file for file in STATIC.rglob("*.*")}  # all files are served by one handler
        files = {f"{FILES_PATH}/corp/{file.relative_to(STATIC)}": 200 for file in kinds.values()}
        of_rest = {each.path: 401 if each.path in read else 405 for each in bindings()}
        assert set(opened.routes) == set(ROUTES) | set(of_rest) | set(console), "each has a row, or is an RPC's"
        for name, visitor in strangers.items():
            async with web_client(visitor, tmp_path) as client:
                for route, status in (ROUTES | of_rest | console | files).items():
                    path = re.sub(r"\{\w+\}", "corp", route)
                    async with client.get(f"https://{opened.http}{path}", headers=dict(visitor.metadata)) as answer:
                        assert answer.status == status, (name, route)
                        told = await answer.text()
                        # The document has examples of the .proto files, and the console its own: the same for all.
                        examples = route == "/api/openapi.json" or route in console | files
                        assert "billing" not in told or examples, (name, route)
        async with aiohttp.ClientSession() as client:
            with pytest.raises(aiohttp.ClientError):
                await client.get(f"http://{opened.http}/healthz")
    await database.close()


def web_client(visitor: Visitor, folder: Path) -> aiohttp.ClientSession:
    """It trusts the cluster's CA, and shows what the visitor shows, which nobody asks for."""
    assert visitor.tls is not None
    assert visitor.tls.roots is not None
    context = ssl.create_default_context(cadata=visitor.tls.roots.decode())
    if visitor.tls.pair is not None:
        file = folder / "shown.pem"
        file.write_bytes(visitor.tls.pair.certificate + visitor.tls.pair.key)
        context.load_cert_chain(file)
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context))
