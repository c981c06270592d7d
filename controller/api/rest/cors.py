"""CORS: pages of which other sites may ask by REST. None, unless --cors-origin names them; and never by a cookie."""

from collections.abc import Sequence
from typing import Final

from aiohttp import hdrs, web

from cronring.controller.api.rest.context import LAST_EVENT_ID
from cronring.protos.idempotency import KEY_HEADER, REPLAYED

_MAY_SEND: Final = ", ".join((hdrs.AUTHORIZATION, hdrs.CONTENT_TYPE, hdrs.IF_MATCH, KEY_HEADER, LAST_EVENT_ID))
_MAY_READ: Final = ", ".join((hdrs.ETAG, hdrs.RETRY_AFTER, hdrs.WWW_AUTHENTICATE, REPLAYED))
_KEPT_S: Final = 600


class Cors:
    """`origins`: as browsers write them, https://HOST or https://HOST:PORT."""

    def __init__(self, origins: Sequence[str]) -> None:
        self._origins = frozenset(origins)

    @property
    def is_on(self) -> bool:
        return bool(self._origins)

    def headers(self, request: web.Request) -> dict[str, str]:
        """Of an answer. Without Allow-Credentials no browser sends or shows what a cookie would get."""
        if not self._origins:
            return {}
        origin = request.headers.get(hdrs.ORIGIN, "")
        if origin not in self._origins:
            return {hdrs.VARY: hdrs.ORIGIN}
        return {
            hdrs.VARY: hdrs.ORIGIN,
            hdrs.ACCESS_CONTROL_ALLOW_ORIGIN: origin,
            hdrs.ACCESS_CONTROL_EXPOSE_HEADERS: _MAY_READ,
        }

    async def preflight(self, methods: Sequence[str], request: web.Request) -> web.Response:
        """A browser asks first whether a page may."""
        found = self.headers(request)
        if hdrs.ACCESS_CONTROL_ALLOW_ORIGIN in found:
            found[hdrs.ACCESS_CONTROL_ALLOW_METHODS] = ", ".join(methods)
            found[hdrs.ACCESS_CONTROL_ALLOW_HEADERS] = _MAY_SEND
            found[hdrs.ACCESS_CONTROL_MAX_AGE] = str(_KEPT_S)
        return web.Response(status=204, headers=found)
