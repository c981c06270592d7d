"""Many answers to one request: a line of JSON for each, or server-sent events to who asks for them."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from aiohttp import hdrs, web
from google.protobuf.message import Message

from cronring.controller.api.rest.answers import json_of

LINES: Final = "application/x-ndjson"
EVENTS: Final = "text/event-stream"
_POSITION: Final = "KIND_POSITION"
BEAT_S: Final = 5.0  # proxies hang up on who says nothing for a minute, and a page says soon that it hears nothing
# With data: of a comment no browser tells its page, which would not know a dead stream from a quiet one.
_BEAT: Final = b"event: beat\ndata: {}\n\n"
LOOK_S: Final = 1.0  # so soon it is known that the caller has gone
LAST_WORDS_S: Final = 1.0


class AnswerStream:
    """Of one request. It begins with the first message, or the first beat: until then it can fail by its status.

    `headers`: of its beginning, besides those of every one.
    """

    def __init__(self, request: web.Request) -> None:
        self.headers: Mapping[str, str] = {}
        self._request = request
        self._as_events = EVENTS in request.headers.get(hdrs.ACCEPT, "")
        self._response: web.StreamResponse | None = None

    @property
    def begun(self) -> web.StreamResponse | None:
        return self._response

    async def write(self, message: Message) -> None:
        """Waits until there is room for more. Raises ConnectionError once the caller is gone."""
        await self._send(_event(message) if self._as_events else json_of(message) + b"\n")

    async def fail(self, problem: dict[str, Any]) -> None:
        """The last words, once it has begun. Who reads nothing is not waited for."""
        text = json.dumps(problem if self._as_events else {"problem": problem})
        last = f"event: problem\ndata: {text}\n\n" if self._as_events else f"{text}\n"
        with contextlib.suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(LAST_WORDS_S):
                await self._send(last.encode())

    async def ended(self) -> web.StreamResponse:
        """What aiohttp is to have of it. Whatever could be said has been."""
        if self._response is None:
            await self._send(b"")
        assert self._response is not None, "it was just begun"
        with contextlib.suppress(ConnectionError):
            await self._response.write_eof()
        return self._response

    @contextlib.asynccontextmanager
    async def beating(self) -> AsyncIterator[None]:
        """Meanwhile whoever waits for messages hears that it goes on; once they are gone, it doesn't."""
        handling = asyncio.current_task()
        assert handling is not None, "aiohttp makes a task of each request"
        task = asyncio.get_running_loop().create_task(self._beat(handling))
        try:
            yield
        finally:
            task.cancel()

    async def _beat(self, handling: "asyncio.Task[Any]") -> None:
        with contextlib.suppress(ConnectionError):
            looks = 0
            while self._request.transport is not None and not self._request.transport.is_closing():
                await asyncio.sleep(LOOK_S)
                looks += 1
                if looks % (BEAT_S / LOOK_S) == 0:
                    await self._send(_BEAT if self._as_events else b"\n")
        handling.cancel()

    async def _send(self, data: bytes) -> None:
        if self._response is None:
            # What stands between must neither keep it back nor change it.
            headers = {hdrs.CACHE_CONTROL: "no-store, no-transform", "X-Accel-Buffering": "no", **self.headers}
            self._response = web.StreamResponse(headers=headers)
            self._response.content_type = EVENTS if self._as_events else LINES
            await self._response.prepare(self._request)
        await self._response.write(data)


def _event(message: Any) -> bytes:
    """With its kind as its name, and its token as its id: a browser gives that back as Last-Event-ID.

    One that has only a token has no data, so nobody's script is told of it.
    """
    kind = message.DESCRIPTOR.fields_by_name.get("kind")
    name = "" if kind is None or kind.enum_type is None else kind.enum_type.values[message.kind].name
    token = getattr(message, "resume_token", "")
    parts = [f"id: {token}\n".encode()] if token else []
    if name != _POSITION:
        parts += [f"event: {name.removeprefix('KIND_').lower()}\n".encode()] if name else []
        parts.append(b"data: " + json_of(message) + b"\n")
    return b"".join([*parts, b"\n"])
