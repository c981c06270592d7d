"""The routes of REST. They are there before any database is, and are answered once the services stand behind them."""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from aiohttp import hdrs, web
from google.protobuf.message import Message

from cronring.controller.api.rest.answers import ASIDE, ASIDE_FROM, JSON, json_of
from cronring.controller.api.rest.bindings import Binding, bindings
from cronring.controller.api.rest.context import Aborted, CallerGone, RestContext
from cronring.controller.api.rest.packing import answered
from cronring.controller.api.rest.streams import AnswerStream
from cronring.controller.api.web_problems import problem_body, status_problem
from cronring.controller.errors import Busy, StoreUnavailable

# All connections of HTTP are 600: whatever REST is asked for, there is room for those who ask whether we are well.
STREAMS_MAX: Final = 400
REQUESTS_MAX: Final = 150
_AWAY: Final = "this controller has no connection to PostgreSQL yet; try later"


class Routes:
    """To a Door it is the server that handlers are added to; to HTTP it is what answers."""

    def __init__(self) -> None:
        self.bindings = bindings()
        self._handlers: dict[str, Any] = {}
        self._answering: set[asyncio.Task[Any]] = set()
        self._streaming: set[asyncio.Task[Any]] = set()

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """A Door adds each handler twice; the other way names the service."""

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Any]) -> None:
        self._handlers |= {f"/{service}/{method}": handler for method, handler in handlers.items()}

    def add_to(self, router: web.UrlDispatcher) -> None:
        for each in self.bindings:
            router.add_route(each.verb, each.path, partial(self._answer, each))

    async def close(self, grace_s: float) -> None:
        """From now on nothing is answered; what is being answered has so long."""
        self._handlers.clear()
        if self._answering:
            await asyncio.wait(self._answering, timeout=grace_s)
        for task in self._answering | self._streaming:
            task.cancel()

    async def _answer(self, binding: Binding, request: web.Request) -> web.StreamResponse:
        """Raises StoreUnavailable, Busy."""
        handler = self._handlers.get(binding.rpc)
        if handler is None:
            raise StoreUnavailable(_AWAY)
        task = asyncio.current_task()
        assert task is not None, "aiohttp makes a task of each request"
        answering, most = (self._streaming, STREAMS_MAX) if binding.streams else (self._answering, REQUESTS_MAX)
        if len(answering) >= most:
            raise Busy(f"this controller answers {most} such requests by HTTP, and takes no more; try another one")
        answering.add(task)
        try:
            if binding.streams:
                return await self._stream(binding, request, handler)
            return await self._one(binding, request, handler)
        finally:
            answering.discard(task)

    async def _one(self, binding: Binding, request: web.Request, handler: Any) -> web.Response:
        context = RestContext(request, binding, None)
        try:
            message = await handler.stream_unary(None, context)
        except Aborted as error:
            return status_problem(error.status, request, http_status=error.http_status)
        if not binding.answer.fields:
            return web.Response(status=204, headers=context.trailing)
        body = await _json(message, request)
        headers: dict[str, str] = {hdrs.CACHE_CONTROL: "no-store", **context.trailing}
        if etag := getattr(message, "etag", ""):
            headers[hdrs.ETAG] = f'"{etag}"'
        status = 201 if binding.has_made(message) and not context.rehearses else 200
        if "secret" in binding.answer.fields_by_name:
            return web.Response(body=body, status=status, content_type=JSON, headers=headers)
        return answered(body, request, status=status, kind=JSON, headers=headers)

    async def _stream(self, binding: Binding, request: web.Request, handler: Any) -> web.StreamResponse:
        stream = AnswerStream(request)
        context = RestContext(request, binding, stream)
        try:
            async with stream.beating():
                await handler.stream_stream(None, context)
        except Aborted as error:
            answer = status_problem(error.status, request, http_status=error.http_status)
            if stream.begun is None:
                return answer
            await stream.fail(problem_body(error.status, answer.status, request.path))
        except CallerGone:
            return stream.begun or web.Response()
        return await stream.ended()


async def _json(message: Message, request: web.Request) -> bytes:
    if message.ByteSize() < ASIDE_FROM:
        return json_of(message)
    return await asyncio.get_running_loop().run_in_executor(request.config_dict[ASIDE], json_of, message)
