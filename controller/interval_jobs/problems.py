"""What the façade refuses, as problem+json (RFC 9457)."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from aiohttp import hdrs, web

from cronring.controller.api.web_problems import as_problem
from cronring.controller.errors import CronringError

BUSY_S: Final = 1  # after which one who was sent away may come again
SHOWN_MAX: Final = 20


class TermFault(NamedTuple):
    """What is wrong with a field of a request."""

    field: str
    description: str


class IntervalRefused(CronringError):
    """A request that is not answered. `status`: of HTTP. `retry_s`: after which it may be sent again; None: never."""

    def __init__(self, status: int, detail: str, faults: Sequence[TermFault] = (), retry_s: int | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.faults = tuple(faults)
        self.retry_s = retry_s


def malformed(detail: str) -> IntervalRefused:
    return IntervalRefused(400, detail)


def unfit(faults: Sequence[TermFault]) -> IntervalRefused:
    """Values that don't fit."""
    return IntervalRefused(422, "; ".join(f"{field}: {description}" for field, description in faults[:3]), faults)


def busy(detail: str) -> IntervalRefused:
    """Nothing was done."""
    return IntervalRefused(429, detail, retry_s=BUSY_S)


def refused(error: IntervalRefused, path: str) -> web.Response:
    response = problem(error.status, str(error), path, error.faults)
    if error.retry_s is not None:
        response.headers["Retry-After"] = str(error.retry_s)
    return response


def problem(status: int, detail: str, path: str, faults: Sequence[TermFault] = ()) -> web.Response:
    """`faults`: told one by one, the first of them."""
    body: dict[str, object] = {
        "type": "about:blank", "title": web.Response(status=status).reason, "status": status, "detail": detail,
        "instance": path,
    }  # fmt: skip
    if faults:
        body["violations"] = [fault._asdict() for fault in faults[:SHOWN_MAX]]
    return as_problem(body, {hdrs.CACHE_CONTROL: "no-store"})
