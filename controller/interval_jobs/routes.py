"""/api/v1/jobs, /api/v1/executions and /api/v1/scheduler: the contract's routes, for those whom the door knows."""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial, wraps
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from aiohttp import hdrs, web

from cronring.controller.api.keyed import Once, only_key
from cronring.controller.api.places import CallPlaces
from cronring.controller.api.problems import InvalidRequest
from cronring.controller.api.rest.context import NO_CONDITION
from cronring.controller.api.rest.packing import answered, packed
from cronring.controller.api.same_site import SAFE_METHODS
from cronring.controller.api.scope import require, shows_outputs
from cronring.controller.api.shown import RequestShown
from cronring.controller.api.web_identity import web_principal
from cronring.controller.core.orders.interval_states import IntervalOrder, IntervalStatus
from cronring.controller.errors import CronringError, NotFound, StoreUnavailable
from cronring.controller.interval_jobs.bodies import execution_body, job_body, metrics_body, stats_body
from cronring.controller.interval_jobs.problems import IntervalRefused, TermFault, malformed, refused, unfit
from cronring.controller.interval_jobs.service import IntervalJobsService
from cronring.controller.interval_jobs.terms import BODY_MAX, NAME_MAX, read_given
from cronring.controller.ports import fates
from cronring.controller.ports.caller import acting, known_as
from cronring.controller.ports.interval_jobs import IntervalJobRow
from cronring.controller.ports.request_keys import RequestKey, RequestKeys
from cronring.protos.idempotency import DONE_ONCE_ANYHOW, KEY_HEADER, REPLAYED
from cronring.schema.duration import measured
from cronring.schema.identity import Permission
from cronring.schema.keys import DEFAULT_NAMESPACE, JobKey

# Requests at work at once: claims and ends always find one of ten connections to PostgreSQL.
AT_ONCE: Final = 4
WAITING_MAX: Final = 64
WAITING_S: Final = 2.0
BODY_S: Final = 10.0  # for a body to arrive, once its head has
PAGE: Final = 50
PAGE_MAX: Final = 1_000
OFFSET_MAX: Final = 2**31 - 1
ID_MAX: Final = 2**63 - 1
STATUSES: Final = tuple(status.value for status in IntervalStatus)
PAGED: Final = ("limit", "offset")  # parameters of a list
ORDERS: Final = tuple(order for order in IntervalOrder if order is not IntervalOrder.UPDATE)

GIVEN: Final[web.RequestKey[dict[str, Any]]] = web.RequestKey("given", dict)  # of a request: its body
Answer = Callable[[IntervalJobsService, web.Request], Awaitable["_Answered"]]


class _Answered(NamedTuple):
    """What a route answers. `body`: JSON; "": there is none. `location`: of what was made."""

    body: str
    status: int = 200
    location: str = ""

    def kept(self) -> bytes:
        """As it is kept with its request's key."""
        return json.dumps(self).encode()


class _Page(NamedTuple):
    """Of a list."""

    limit: int
    offset: int


class IntervalJobsRoutes:
    """The routes. Until `open` there is no database. `namespace`: of all its jobs."""

    def __init__(self, namespace: str = DEFAULT_NAMESPACE) -> None:
        self._service: IntervalJobsService | None = None
        self._once: Once | None = None
        self._job = JobKey(namespace, "", "")
        self._places = CallPlaces(AT_ONCE, WAITING_MAX)

    def open(self, service: IntervalJobsService, keys: RequestKeys) -> None:
        self._service, self._once = service, Once(keys)

    def close(self) -> None:
        """The database goes."""
        self._service = self._once = None

    def add_to(self, router: web.UrlDispatcher) -> None:
        add = router.add_route
        add("POST", "/api/v1/jobs", self._answering(self._create, takes=True))
        add("GET", "/api/v1/jobs", self._answering(self._list, *PAGED, "status", "source_id"))
        add("GET", "/api/v1/jobs/{id}", self._answering(self._get))
        add("PUT", "/api/v1/jobs/{id}", self._answering(self._update, takes=True))
        add("DELETE", "/api/v1/jobs/{id}", self._answering(_delete))
        add("GET", "/api/v1/jobs/{id}/executions", self._answering(self._runs, *PAGED))
        add("GET", "/api/v1/jobs/{id}/stats", self._answering(_stats))
        for order in ORDERS:
            add("POST", f"/api/v1/jobs/{{id}}/{order}", self._answering(partial(self._order, order)))
        add("GET", "/api/v1/executions/{id}", self._answering(self._run))
        add("GET", "/api/v1/scheduler/metrics", self._answering(_metrics))

    def _answering(
        self, answer: Answer, *parameters: str, takes: bool = False
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        """Whoever asks is known, and may, before anything but a request's head is read.

        `parameters`: names that its query may have. `takes`: a body.
        """

        @wraps(answer if not isinstance(answer, partial) else answer.func)
        async def handler(request: web.Request) -> web.Response:
            principal = await web_principal(request)
            if self._service is None or self._once is None:
                raise StoreUnavailable("this controller has no connection to PostgreSQL; try later")
            with known_as(principal):
                require(Permission.VIEW if request.method in SAFE_METHODS else Permission.OPERATE, self._job.namespace)
                try:
                    _check_query(request, parameters)
                    _check_condition(request)
                    key = _key(request)
                    if takes:
                        request[GIVEN] = read_given(await _body(request))
                    async with self._places.place(WAITING_S):
                        done = partial(answer, self._service, request)
                        if not key:
                            return _sent(await done(), request)
                        whole = RequestKey(str(principal), _route(request), key)
                        found = await self._once.former_or_done(whole, _digest(request), done, _Answered.kept)
                        if isinstance(found, _Answered):
                            return _sent(found, request)
                        return _sent(_Answered(*json.loads(found)), request, {REPLAYED: "true"})
                except (CronringError, InvalidRequest) as error:
                    return refused(error, request, fates.fate())

        return handler

    async def _create(self, service: IntervalJobsService, request: web.Request) -> _Answered:
        given = request[GIVEN]
        row = await service.create(given, _actor(request))
        return _json(self._shown(row), 201, f"/api/v1/jobs/{row.interval_id}")

    async def _list(self, service: IntervalJobsService, request: web.Request) -> _Answered:
        page = _page(request)
        status, source_id = request.query.get("status", ""), request.query.get("source_id")
        if status and status not in STATUSES:
            raise unfit([TermFault("status", f"is {status!r:.100}; it must be one of {', '.join(STATUSES)}")])
        if source_id is not None and (len(source_id) > NAME_MAX or "\x00" in source_id):
            raise unfit([TermFault("source_id", f"must have {NAME_MAX} characters at most, and no NUL")])
        rows, total = await service.find(status, source_id or None, *page)
        return _json({"jobs": [self._shown(row) for row in rows], "total": total, **page._asdict()})

    async def _get(self, service: IntervalJobsService, request: web.Request) -> _Answered:
        return _json(self._shown(await service.get(_id(request))))

    async def _update(self, service: IntervalJobsService, request: web.Request) -> _Answered:
        given = request[GIVEN]
        return _json(self._shown(await service.update(_id(request), given, _actor(request))))

    async def _order(self, order: IntervalOrder, service: IntervalJobsService, request: web.Request) -> _Answered:
        return _json(self._shown(await service.order(_id(request), order, _actor(request))))

    async def _runs(self, service: IntervalJobsService, request: web.Request) -> _Answered:
        page, interval_id = _page(request), _id(request)
        runs, total = await service.runs(interval_id, *page)
        bodies = [execution_body(run, interval_id, outputs=self._outputs) for run in runs]
        return _json({"executions": bodies, "total": total, **page._asdict()})

    async def _run(self, service: IntervalJobsService, request: web.Request) -> _Answered:
        text = _id(request)
        if not (text.isascii() and text.isdigit()) or int(text) > ID_MAX:
            raise NotFound(f"there is no execution {text!r}")
        interval_id, run = await service.run(int(text))
        return _json(execution_body(run, interval_id, outputs=self._outputs))

    def _shown(self, row: IntervalJobRow) -> dict[str, Any]:
        return job_body(row, outputs=self._outputs)

    @property
    def _outputs(self) -> bool:
        """Whether the caller may read what authors and their users wrote."""
        return shows_outputs(str(self._job))


async def _delete(service: IntervalJobsService, request: web.Request) -> _Answered:
    await service.delete(_id(request), _actor(request))
    return _Answered("", 204)


async def _stats(service: IntervalJobsService, request: web.Request) -> _Answered:
    return _json(stats_body(*await service.figures(_id(request))))


async def _metrics(service: IntervalJobsService, _: web.Request) -> _Answered:
    return _json(metrics_body(*await service.all_figures()))


def _sent(answer: _Answered, request: web.Request, headers: Mapping[str, str] = MappingProxyType({})) -> web.Response:
    if not answer.body:
        return web.Response(status=answer.status, headers=headers)
    said = {hdrs.CACHE_CONTROL: "no-store", **headers}
    if answer.location:
        said[hdrs.LOCATION] = answer.location
    response = answered(answer.body.encode(), request, status=answer.status, kind="application/json", headers=said)
    response.charset = "utf-8"
    return response


def _key(request: web.Request) -> str:
    """Its Idempotency-Key; "": it has none. Raises InvalidRequest."""
    words = DONE_ONCE_ANYHOW if request.method in SAFE_METHODS else ""
    return only_key(request.headers.getall(KEY_HEADER, []), words)


def _check_condition(request: web.Request) -> None:
    """Nothing here has an ETag, and what was to be conditional must not be done all the same. Raises InvalidRequest."""
    if hdrs.IF_MATCH in request.headers:
        raise InvalidRequest([(hdrs.IF_MATCH, NO_CONDITION)])


def _route(request: web.Request) -> str:
    """Whatever job it is of: keys are of one method."""
    resource = request.match_info.route.resource
    assert resource is not None, "a route of ours has answered it"
    return f"{request.method} {resource.canonical}"


def _digest(request: web.Request) -> bytes:
    """Of what is asked for, however its body is written."""
    asked = json.dumps([request.path, request.get(GIVEN)], sort_keys=True)
    return hashlib.sha256(asked.encode()).digest()


def _id(request: web.Request) -> str:
    """Raises NotFound for what no id can be."""
    text = request.match_info["id"]
    if len(text) > NAME_MAX or "\x00" in text or not text.isprintable():
        raise NotFound("there is nothing of this id")
    return text


def _actor(request: web.Request) -> str:
    """As it is kept with what was done."""
    return acting(RequestShown(request).peer())


async def _body(request: web.Request) -> bytes:
    """Raises IntervalRefused."""
    if words := packed(request):
        raise IntervalRefused(415, words)
    if (request.content_length or 0) > BODY_MAX:
        raise _too_large()
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for part in request.content.iter_any():
                body += part
                if len(body) > BODY_MAX:
                    raise _too_large()
    except TimeoutError:
        words = f"the body has not arrived within {measured(BODY_S * 1_000)}; send the request once more"
        raise IntervalRefused(408, words) from None
    return bytes(body)


def _too_large() -> IntervalRefused:
    return IntervalRefused(
        413, f"the body is larger than {BODY_MAX} bytes; pass a reference instead of what it refers to"
    )


def _check_query(request: web.Request, allowed: Sequence[str]) -> None:
    """What somebody wanted to say must not be passed over. Raises IntervalRefused."""
    for name in request.query:
        if name not in allowed:
            there = ", ".join(allowed) or "none: what a job is given stands in the body"
            raise malformed(f"there is no parameter {name!r:.100} here; there are {there}")
        if len(request.query.getall(name)) > 1:
            raise malformed(f"{name} is given more than once; give it once")


def _page(request: web.Request) -> _Page:
    """Raises IntervalRefused."""
    limit = _number("limit", request.query.get("limit", str(PAGE)), 1, PAGE_MAX)
    return _Page(limit, _number("offset", request.query.get("offset", "0"), 0, OFFSET_MAX))


def _number(name: str, text: str, least: int, most: int) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 20:
        raise malformed(f"{name} is {text!r:.100}; it must be a number")
    if not least <= int(text) <= most:
        raise unfit([TermFault(name, f"is {text}; it must be from {least} to {most}")])
    return int(text)


def _json(body: Mapping[str, Any], status: int = 200, location: str = "") -> _Answered:
    return _Answered(json.dumps(body, ensure_ascii=False), status, location)
