"""The routes of REST. They are there before any database is, and are answered once the services stand behind them."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

from aiohttp import hdrs, web
from google.protobuf.message import Message

from cronring.controller.api.rest.answers import ASIDE_FROM, JSON, json_of
from cronring.controller.api.rest.bindings import Binding, bindings
from cronring.controller.api.rest.context import Aborted, CallerGone, RestContext
from cronring.controller.api.rest.streams import AnswerStream
from cronring.controller.api.web_problems import problem_body, status_problem
from cronring.controller.errors import StoreUnavailable

REPLAYED: Final = "Idempotency-Replayed"
_AWAY: Final = "this controller has no connection to PostgreSQL yet; try later"


class Routes:
    """To a Door it is the server that handlers are added to; to HTTP it is what answers."""

    def __init__(self) -> None:
        self.bindings = bindings()
        self._handlers: dict[str, Any] = {}
        self._answering: set[asyncio.Task[Any]] = set()
        # One thread, as in the Door: large messages at once would be as much memory as callers like.
        self._aside = ThreadPoolExecutor(1, "large JSON")

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
        for task in self._answering:
            task.cancel()

    async def _answer(self, binding: Binding, request: web.Request) -> web.StreamResponse:
        """Raises StoreUnavailable."""
        handler = self._handlers.get(binding.rpc)
        if handler is None:
            raise StoreUnavailable(_AWAY)
        task = asyncio.current_task()
        assert task is not None, "aiohttp makes a task of each request"
        self._answering.add(task)
        try:
            return await (self._stream if binding.streams else self._one)(binding, request, handler)
        finally:
            self._answering.discard(task)

    async def _one(self, binding: Binding, request: web.Request, handler: Any) -> web.StreamResponse:
        context = RestContext(request, binding, self._aside, None)
        try:
            message = await handler.stream_unary(None, context)
        except Aborted as error:
            return status_problem(error.status, request, http_status=error.http_status)
        if not binding.answer.fields:
            return web.Response(status=204)
        body = await self._json(message)
        headers: dict[str, str] = {hdrs.CACHE_CONTROL: "no-store"}
        if etag := getattr(message, "etag", ""):
            headers[hdrs.ETAG] = f'"{etag}"'
        if context.is_repeated:
            headers[REPLAYED] = "true"
        return web.Response(body=body, status=201 if binding.makes else 200, content_type=JSON, headers=headers)

    async def _stream(self, binding: Binding, request: web.Request, handler: Any) -> web.StreamResponse:
        stream = AnswerStream(request)
        context = RestContext(request, binding, self._aside, stream)
        try:
            async with stream.beating():
                await handler.stream_stream(None, context)
        except Aborted as error:
            if stream.begun is None:
                return status_problem(error.status, request, http_status=error.http_status)
            answer = status_problem(error.status, request, http_status=error.http_status)
            await stream.fail(problem_body(error.status, answer.status, request.path))
        except CallerGone:
            return stream.begun or web.Response()
        return await stream.ended()

    async def _json(self, message: Message) -> bytes:
        if message.ByteSize() < ASIDE_FROM:
            return json_of(message)
        return await asyncio.get_running_loop().run_in_executor(self._aside, json_of, message)
