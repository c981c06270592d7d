"""CORS: pages of which other sites may ask for what is beneath /api/. None, unless --cors-origin names them; and never
by a cookie.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from aiohttp import hdrs, web

from cronring.controller.api.rest.context import LAST_EVENT_ID
from cronring.protos.idempotency import KEY_HEADER, REPLAYED

_MAY_SEND: Final = ", ".join((hdrs.AUTHORIZATION, hdrs.CONTENT_TYPE, hdrs.IF_MATCH, KEY_HEADER, LAST_EVENT_ID))
_MAY_READ: Final = ", ".join((hdrs.ETAG, hdrs.LOCATION, hdrs.RETRY_AFTER, hdrs.WWW_AUTHENTICATE, REPLAYED))
_KEPT_S: Final = 600
_BENEATH: Final = "/api/"  # what else there is has a browser's own login, or is for machines


class Cors:
    """`origins`: as browsers write them, https://HOST or https://HOST:PORT.

    It stands around the whole application, so that no route beneath /api/ can be without it.
    """

    def __init__(self, origins: Sequence[str]) -> None:
        self._origins = frozenset(origins)

    def add_to(self, application: web.Application) -> None:
        if self._origins:
            application.on_response_prepare.append(self._tell)
            application.middlewares.append(self._preflights())

    async def _tell(self, request: web.Request, response: web.StreamResponse) -> None:
        """A signal of aiohttp's: before the head of any answer is sent, of a problem or a stream, too.

        Without Allow-Credentials no browser sends or shows what a cookie would get.
        """
        if not request.path.startswith(_BENEATH):
            return
        response.headers.add(hdrs.VARY, hdrs.ORIGIN)
        if self._allows(request):
            response.headers[hdrs.ACCESS_CONTROL_ALLOW_ORIGIN] = request.headers[hdrs.ORIGIN]
            response.headers[hdrs.ACCESS_CONTROL_EXPOSE_HEADERS] = _MAY_READ

    def _preflights(self) -> Any:
        @web.middleware
        async def answered(
            request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
        ) -> web.StreamResponse:
            refused = request.match_info.http_exception
            asks = request.method == hdrs.METH_OPTIONS and request.path.startswith(_BENEATH)
            if not asks or not isinstance(refused, web.HTTPMethodNotAllowed):
                return await handler(request)
            return self._preflight(sorted(refused.allowed_methods), request)

        return answered

    def _preflight(self, methods: Sequence[str], request: web.Request) -> web.Response:
        """A browser asks first whether a page may."""
        found: dict[str, str] = {}
        if self._allows(request):
            found[hdrs.ACCESS_CONTROL_ALLOW_METHODS] = ", ".join(methods)
            found[hdrs.ACCESS_CONTROL_ALLOW_HEADERS] = _MAY_SEND
            found[hdrs.ACCESS_CONTROL_MAX_AGE] = str(_KEPT_S)
        return web.Response(status=204, headers=found)

    def _allows(self, request: web.Request) -> bool:
        return request.headers.get(hdrs.ORIGIN, "") in self._origins
