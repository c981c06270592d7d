"""A real receiver of webhooks: an HTTP server on loopback that verifies, and keeps, what it is sent.

Everything is verified by the library of Standard Webhooks as well, as any receiver would.
"""

import asyncio
import json
from typing import Any

from aiohttp import web
from standardwebhooks import Webhook

import cronring.webhooks
from tests.support.cluster import free_port
from tests.support.waiting import TIMEOUT_S, wait_until


class Receiver:
    """`answers` are given in turn, the last one for ever: (status, headers). `secrets` by path."""

    def __init__(self) -> None:
        self.port = free_port()
        self.secrets: dict[str, str] = {}
        self.answers: list[tuple[int, dict[str, str]]] = [(204, {})]
        self.events: list[dict[str, Any]] = []
        self.tries: list[tuple[float, str]] = []
        self.holding = asyncio.Event()
        self.holding.set()
        self._runner: web.AppRunner | None = None

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}/{path}"

    async def start(self) -> None:
        application = web.Application()
        application.router.add_post("/{path}", self._take)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _take(self, request: web.Request) -> web.Response:
        body = await request.read()
        path = request.match_info["path"]
        sent = cronring.webhooks.verify(self.secrets[path], request.headers, body)
        given = {name.lower(): value for name, value in request.headers.items()}
        assert Webhook(self.secrets[path]).verify(body, given) == sent == json.loads(body)
        assert sent.keys() == {"id", "type", "timestamp", "data"}, "as Standard Webhooks has it, and the id"
        assert sent["id"] == request.headers["webhook-id"]
        event = {"id": sent["id"], "event": sent["type"].partition(".")[2], "at": sent["timestamp"], **sent["data"]}
        self.tries.append((asyncio.get_running_loop().time(), event["id"]))
        if path == "slow":
            await self.holding.wait()
        status, headers = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if status < 300:
            self.events.append(event | {"_path": path})
        return web.Response(status=status, headers=headers, text=f"answered {status}")

    def of(self, kind: str, job: str = "", path: str = "") -> list[dict[str, Any]]:
        return [
            event
            for event in self.events
            if event["event"] == kind and job in {"", event.get("job")} and path in {"", event["_path"]}
        ]

    async def heard(self, kind: str, job: str = "", path: str = "", timeout_s: float = TIMEOUT_S) -> dict[str, Any]:
        """The first of a kind."""
        await wait_until(
            lambda: bool(self.of(kind, job, path)), lambda: f"no {kind} of {job}: {self.events}", timeout_s
        )
        return self.of(kind, job, path)[0]

    async def more_than(self, events: int) -> None:
        await wait_until(lambda: len(self.events) > events, "nothing is told any more")
