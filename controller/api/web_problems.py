"""What cronring's errors are by HTTP."""

from collections.abc import Mapping
from typing import Final

from aiohttp import hdrs, web

from cronring.controller.errors import (
    CronringError,
    Forbidden,
    IssuerAway,
    NotFound,
    StoreUnavailable,
    TooMany,
    Unauthenticated,
)

AGAIN_S: Final = 5  # after which who was refused for now may try again
_STATUSES: Final[Mapping[type[CronringError], int]] = {
    Unauthenticated: 401,
    Forbidden: 403,
    NotFound: 404,
    TooMany: 429,
    IssuerAway: 503,
    StoreUnavailable: 503,
}


def status_of(error: CronringError) -> int:
    """500 for what is nobody's fault but ours."""
    return next((status for kind, status in _STATUSES.items() if isinstance(error, kind)), 500)


def headers_of(status: int) -> dict[str, str]:
    """What such an answer has to say besides."""
    found: dict[str, str] = {hdrs.CACHE_CONTROL: "no-store"}
    if status == 401:
        found[hdrs.WWW_AUTHENTICATE] = 'Bearer realm="cronring"'
    if status in {429, 503}:
        found[hdrs.RETRY_AFTER] = str(60 if status == 429 else AGAIN_S)
    return found


def problem(error: CronringError) -> web.Response:
    """For programs."""
    status = status_of(error)
    return web.json_response(
        {"error": web.Response(status=status).reason.lower(), "reason": str(error)},
        status=status,
        headers=headers_of(status),
    )
