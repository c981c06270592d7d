"""REST as a whole: routes that are always there, and a Door to the services, which comes with the database."""

from collections.abc import Callable, Sequence
from typing import Any

import grpc
from aiohttp import web

from cronring.controller.api.calls import Calls
from cronring.controller.api.door import Door
from cronring.controller.api.rest.judge import RestJudge
from cronring.controller.api.rest.pages import add_pages
from cronring.controller.api.rest.routes import Routes
from cronring.controller.api.web_identity import WebDoor
from cronring.controller.ports.audit_chain import OnRefusal


class Rest:
    """`door`: says who asks by HTTP."""

    def __init__(self, door: WebDoor) -> None:
        self._judge = RestJudge(door)
        self._routes = Routes()
        self._door: Any = None

    def add_to(self, router: web.UrlDispatcher) -> None:
        self._routes.add_to(router)
        add_pages(router)

    def open(
        self,
        services: Sequence[tuple[str, Callable[[grpc.aio.Server], None]]],
        calls: Calls,
        refused: OnRefusal,
    ) -> None:
        """The services that gRPC has as well. Raises UnjudgedMethodError."""
        self._door = Door(self._routes, refused, calls, self._judge)
        for _, add in services:
            add(self._door)

    async def close(self, grace_s: float) -> None:
        """Take no more requests, and give those under way `grace_s`."""
        await self._routes.close(grace_s)
        if self._door is not None:
            self._door.close()
