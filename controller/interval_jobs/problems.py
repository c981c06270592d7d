"""What the façade refuses: the problems that all of HTTP has, with the contract's statuses."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Final, NamedTuple

from aiohttp import web

from cronring.controller.api.problems import InvalidRequest, status_of
from cronring.controller.api.web_problems import status_problem, unread
from cronring.controller.errors import Busy, CronringError
from cronring.protos.problems import Fate

BUSY_S: Final = 1  # after which one who was sent away may come again


class TermFault(NamedTuple):
    """What is wrong with a field of a request."""

    field: str
    description: str


class IntervalRefused(CronringError):
    """A request that is not answered. `status`: of HTTP."""

    def __init__(self, status: int, detail: str, faults: Sequence[TermFault] = ()) -> None:
        super().__init__(detail)
        self.status = status
        self.faults = tuple(faults)


def malformed(detail: str) -> IntervalRefused:
    return IntervalRefused(400, detail)


def unfit(faults: Sequence[TermFault]) -> IntervalRefused:
    """Values that don't fit."""
    return IntervalRefused(422, "; ".join(f"{field}: {description}" for field, description in faults[:3]), faults)


def refused(error: CronringError | InvalidRequest, request: web.Request, fate: Fate) -> web.Response:
    """`fate`: of what the request was to change."""
    http_status = error.status if isinstance(error, IntervalRefused) else None
    again_s = None
    match error:
        case IntervalRefused() if error.faults:
            status, _ = status_of(InvalidRequest([*error.faults]))
        case IntervalRefused():
            status = unread(error.status, str(error))
        case _:
            status, _ = status_of(error, fate)
    if isinstance(error, Busy):
        http_status, again_s = HTTPStatus.TOO_MANY_REQUESTS, BUSY_S
    return status_problem(status, request, http_status=http_status, again_s=again_s)
