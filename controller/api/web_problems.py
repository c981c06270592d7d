"""What cronring's errors are by HTTP."""

import math
from collections.abc import Mapping
from typing import Final

from aiohttp import hdrs, web

from cronring.controller.errors import (
    CronringError,
    Forbidden,
    IssuerAway,
    NotFound,
    StoreUnavailable,
    Throttled,
    TooMany,
    Unauthenticated,
)

AGAIN_S: Final = 5  # after which who was refused for now may try again
TOO_MANY_S: Final = 60
_STATUSES: Final[Mapping[type[CronringError], int]] = {
    Unauthenticated: 401,
    Forbidden: 403,
    NotFound: 404,
    TooMany: 429,
    Throttled: 429,
    IssuerAway: 503,
    StoreUnavailable: 503,
}
_BEARER: Final = 'Bearer realm="cronring"'


def status_of(error: CronringError) -> int:
    """500 for what is nobody's fault but ours."""
    return next((status for kind, status in _STATUSES.items() if isinstance(error, kind)), 500)


def headers_of(error: CronringError, request: web.Request) -> dict[str, str]:
    """What the answer has to say besides. RFC 6750: a request without a token isn't told of an error in it."""
    found: dict[str, str] = {hdrs.CACHE_CONTROL: "no-store"}
    match status_of(error):
        case 401:
            wrong = ', error="invalid_token"' if hdrs.AUTHORIZATION in request.headers else ""
            found[hdrs.WWW_AUTHENTICATE] = _BEARER + wrong
        case 403:
            found[hdrs.WWW_AUTHENTICATE] = f'{_BEARER}, error="insufficient_scope"'
        case 429 | 503:
            found[hdrs.RETRY_AFTER] = str(_again_s(error))
    return found


def problem(error: CronringError, request: web.Request) -> web.Response:
    """For programs."""
    status = status_of(error)
    said = {"error": web.Response(status=status).reason.lower(), "reason": str(error), "path": request.path}
    return web.json_response(said, status=status, headers=headers_of(error, request))


def _again_s(error: CronringError) -> int:
    """In whole seconds, as HTTP has them."""
    if isinstance(error, Throttled):
        return max(math.ceil(error.retry_s), 1)
    return TOO_MANY_S if isinstance(error, TooMany) else AGAIN_S
