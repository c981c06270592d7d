"""Errors of HTTP, in the one form of RFC 9457. They are made from the status that gRPC would have."""

import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from aiohttp import hdrs, web
from google.rpc import code_pb2, status_pb2

from cronring.controller.api import problems
from cronring.controller.errors import CronringError, Throttled, TooMany
from cronring.protos.problems import Fate, Reason, Said, said_in, sign

PROBLEM: Final = "application/problem+json"
AGAIN_S: Final = 5  # seconds after which a refused caller may try again
TOO_MANY_S: Final = 60
_TYPES: Final = "urn:cronring:problem:"
_STATUSES: Final[Mapping[int, int]] = {
    code_pb2.INVALID_ARGUMENT: 400,
    code_pb2.OUT_OF_RANGE: 400,
    code_pb2.UNAUTHENTICATED: 401,
    code_pb2.PERMISSION_DENIED: 403,
    code_pb2.NOT_FOUND: 404,
    code_pb2.FAILED_PRECONDITION: 409,
    code_pb2.ABORTED: 409,
    code_pb2.ALREADY_EXISTS: 409,
    code_pb2.RESOURCE_EXHAUSTED: 429,
    code_pb2.UNIMPLEMENTED: 501,
    code_pb2.UNAVAILABLE: 503,
    code_pb2.DEADLINE_EXCEEDED: 504,
}
_OF_REASONS: Final[Mapping[str, int]] = {
    Reason.BUSY: 503,
    Reason.ETAG_MISMATCH: 412,
    Reason.KEY_REUSED: 422,
}
_NOT_SERVED: Final = "{method} {path} is not served here; /api/ has the paths that are"


class _Unserved(NamedTuple):
    """`words`: what is wrong, and what to do next."""

    code: code_pb2.Code
    reason: Reason
    words: str


# For requests that HTTP itself refuses. NOT_FOUND is for things of ours only; an unknown path gets another reason.
_UNSERVED: Final[Mapping[int, _Unserved]] = {
    400: _Unserved(
        code_pb2.INVALID_ARGUMENT, Reason.INVALID,
        "the body of {method} {path} is not understood; send it as the page of it, or of /api/, tells",
    ),
    404: _Unserved(code_pb2.NOT_FOUND, Reason.NOT_SERVED, _NOT_SERVED),
    405: _Unserved(code_pb2.UNIMPLEMENTED, Reason.NOT_SERVED, _NOT_SERVED),
    408: _Unserved(
        code_pb2.DEADLINE_EXCEEDED, Reason.TOO_SLOW, "the body has not arrived in time; send the request once more"
    ),
    413: _Unserved(
        code_pb2.RESOURCE_EXHAUSTED, Reason.INVALID,
        "the body is larger than the {most} bytes that {path} takes; send less",
    ),
}  # fmt: skip
_BEARER: Final = 'Bearer realm="cronring"'


def status_of(error: CronringError) -> int:
    """The HTTP status of an error; 500 if the fault is ours."""
    return _http_status(problems.status_of(error)[0])


def headers_of(error: CronringError, request: web.Request) -> dict[str, str]:
    """What the answer has to say besides."""
    return _headers(status_of(error), request, _again_s(error))


def problem(error: Exception, request: web.Request, fate: Fate) -> web.Response:
    """For programs. `fate`: of what the request was to change."""
    return status_problem(problems.status_of(error, fate)[0], request, again_s=_again_s(error))


def status_problem(
    status: status_pb2.Status, request: web.Request, *, http_status: int | None = None, again_s: int | None = None
) -> web.Response:
    """Of a status of ours. `http_status`: in place of its code's. `again_s`: in place of what it says itself."""
    said = said_in(status.details)
    number = http_status or _http_status(status)
    if again_s is None:
        again_s = AGAIN_S if said is None or said.retry_s is None else max(math.ceil(said.retry_s), 1)
    headers = _headers(number, request, again_s)
    if said is not None and said.retry_s is not None:
        headers[hdrs.RETRY_AFTER] = str(again_s)
    body = problem_body(status, number, request.path)
    return web.json_response(body, status=number, content_type=PROBLEM, headers=headers)


def problem_body(status: status_pb2.Status, number: int, path: str) -> dict[str, Any]:
    """The body of a problem with HTTP status `number`. Empty parts are left out."""
    said = said_in(status.details) or Said(Reason.UNEXPECTED, {}, None, ())
    body: dict[str, Any] = {
        "type": _TYPES + said.reason.lower().replace("_", "-"),
        "title": HTTPStatus(number).phrase,
        "status": number,
        "detail": status.message,
        "instance": path,
        "code": code_pb2.Code.Name(status.code),
        "reason": said.reason,
    }
    if said.violations:
        body["violations"] = [{"field": field, "description": words} for field, words in said.violations]
    if said.metadata:
        body["metadata"] = said.metadata
    if said.fate is not Fate.NOT_DONE:
        body["outcome"] = said.fate
    return body


def unserved(error: web.HTTPException, request: web.Request) -> web.Response:
    """What HTTP itself refuses. 405 has to say what is allowed."""
    template = _UNSERVED.get(error.status, _UNSERVED[400]).words
    words = template.format(method=request.method, path=request.path, most=request.client_max_size)
    answer = status_problem(unread(error.status, words), request, http_status=error.status)
    if hdrs.ALLOW in error.headers:
        answer.headers[hdrs.ALLOW] = error.headers[hdrs.ALLOW]
    return answer


def unread(number: int, words: str) -> status_pb2.Status:
    """The status of a request that is refused before its fields are judged. `number`: the HTTP status."""
    kind = _UNSERVED.get(number, _UNSERVED[400])
    status = status_pb2.Status(code=kind.code, message=words)
    sign(status, kind.reason, {})
    return status


def _http_status(status: status_pb2.Status) -> int:
    said = said_in(status.details)
    reason = "" if said is None else said.reason
    if status.code == code_pb2.RESOURCE_EXHAUSTED and reason == Reason.INVALID:
        return 413  # a message beyond its method's bytes, which was not parsed
    return _OF_REASONS.get(reason) or _STATUSES.get(status.code, 500)


def _headers(number: int, request: web.Request, again_s: int) -> dict[str, str]:
    """RFC 6750: a request without a token isn't told of an error in it."""
    found: dict[str, str] = {hdrs.CACHE_CONTROL: "no-store"}
    match number:
        case 401:
            wrong = ', error="invalid_token"' if hdrs.AUTHORIZATION in request.headers else ""
            found[hdrs.WWW_AUTHENTICATE] = _BEARER + wrong
        case 403:
            found[hdrs.WWW_AUTHENTICATE] = f'{_BEARER}, error="insufficient_scope"'
        case 429 | 503:
            found[hdrs.RETRY_AFTER] = str(again_s)
    return found


def _again_s(error: Exception) -> int:
    """In whole seconds, as HTTP has them."""
    if isinstance(error, Throttled):
        return max(math.ceil(error.retry_s), 1)
    return TOO_MANY_S if isinstance(error, TooMany) else AGAIN_S
