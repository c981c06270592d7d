"""What stands before the paths of HTTP: who asks is judged as at the door of gRPC, by the same judge.

What is refused gets the same words as there. Its status is HTTP's for that of gRPC.
"""

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

from aiohttp import web
from google.rpc import code_pb2, status_pb2

from cronring.controller.api.judging import Judge
from cronring.controller.api.policy import Access
from cronring.controller.api.problems import counted_as, status_of
from cronring.controller.errors import CronringError, StoreUnavailable
from cronring.controller.ports.caller import calling
from cronring.protos.problems import said_in

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_STATUSES: Final[Mapping[int, int]] = {
    code_pb2.UNAUTHENTICATED: 401,
    code_pb2.PERMISSION_DENIED: 403,
    code_pb2.RESOURCE_EXHAUSTED: 429,
    code_pb2.UNAVAILABLE: 503,
}
_BEARER: Final = 'Bearer realm="cronring"'


class HttpDoor:
    """`access_of`: what a request takes; None: nothing, it is open to all. `refused` counts what stays out.

    Nobody can be known before `connect`, as that takes a database. What is open is answered all the same.
    """

    def __init__(self, access_of: Callable[[web.Request], Access | None], refused: Callable[[str], None]) -> None:
        self._access_of = access_of
        self._refused = refused
        self._judge: Judge | None = None

    def connect(self, judge: Judge) -> None:
        self._judge = judge

    @property
    def middleware(self) -> object:
        """Handlers behind it know who asks (cronring.controller.ports.caller)."""

        @web.middleware
        async def judged(request: web.Request, handler: Handler) -> web.StreamResponse:
            access = self._access_of(request)
            if access is None:
                return await handler(request)
            shown = _Request(request)
            try:
                if self._judge is None:
                    raise StoreUnavailable("this controller has just started")
                principal = await self._judge.judged(access, shown)
            except CronringError as error:
                if what := counted_as(error):
                    self._refused(what)
                return refusal(request, error)
            with calling(principal, f"{request.method} {request.path}", shown.peer()):
                return await handler(request)

        return judged


class _Request:
    """cronring.controller.api.shown.Shown of a request."""

    def __init__(self, request: web.Request) -> None:
        self._request = request

    def invocation_metadata(self) -> list[tuple[str, str]]:
        return [("authorization", value) for value in self._request.headers.getall("Authorization", ())]

    def auth_context(self) -> Mapping[str, Iterable[bytes]]:
        """Nothing: certificates are for --peer."""
        return {}

    def peer(self) -> str:
        transport = self._request.transport
        name = None if transport is None else transport.get_extra_info("peername")
        if not name:
            return ""
        host, port = name[:2]
        return f"ipv6:[{host}]:{port}" if ":" in host else f"ipv4:{host}:{port}"


def refusal(request: web.Request, error: Exception) -> web.Response:
    """What HTTP says of an error: 401 and 403 with what to show, 429 and 503 with when to come again."""
    status, _ = status_of(error)
    code = _STATUSES.get(status.code, 500)
    headers = _challenge(request, code) | _retry_after(status)
    return web.json_response({"error": status.message, "path": request.path}, status=code, headers=headers)


def _challenge(request: web.Request, code: int) -> dict[str, str]:
    """RFC 6750: a request without a token isn't told of an error in it."""
    match code:
        case 401:
            wrong = ', error="invalid_token"' if "Authorization" in request.headers else ""
            return {"WWW-Authenticate": _BEARER + wrong}
        case 403:
            return {"WWW-Authenticate": f'{_BEARER}, error="insufficient_scope"'}
        case _:
            return {}


def _retry_after(status: status_pb2.Status) -> dict[str, str]:
    """In whole seconds, as HTTP has them."""
    word = said_in(status.details)
    return {} if word is None or word.retry_s is None else {"Retry-After": str(max(math.ceil(word.retry_s), 1))}
