"""A request of HTTP as what gRPC gives to a handler: its message, its caller, and the ways to answer."""

import asyncio
import re
import time
from collections.abc import Iterable
from typing import Any, Final, NoReturn

import grpc
from aiohttp import hdrs, web
from google.protobuf.message import Message
from google.rpc import code_pb2, status_pb2

from cronring.controller.api.problems import refusal_of
from cronring.controller.api.rest.answers import ASIDE, ASIDE_FROM
from cronring.controller.api.rest.bindings import Binding
from cronring.controller.api.rest.bodies import JSON_FACTOR, read_body
from cronring.controller.api.rest.packing import packed
from cronring.controller.api.rest.reading import JsonReading, nested, shown
from cronring.controller.api.rest.streams import AnswerStream
from cronring.controller.api.shown import RequestShown
from cronring.protos.admission import RefusedMessage
from cronring.protos.idempotency import KEY_HEADER
from cronring.protos.problems import DETAILS_KEY

CALL_S: Final = 60.0  # a request that is one answer has it by then, or is told why not
LAST_EVENT_ID: Final = "Last-Event-ID"
NO_CONDITION: Final = "is not known to this method; leave it out"  # of If-Match
_RESUMES: Final = "resume_token"
_ETAG: Final = "etag"
_NONE: Final = "-"  # no etag is like this
_TAG: Final = re.compile(r'(W/)?"[!#-~]{0,200}"', re.ASCII)


class Aborted(grpc.aio.BaseError):
    """The call ended with this status. `http_status`: where gRPC has none for it."""

    def __init__(self, status: status_pb2.Status, http_status: int | None = None) -> None:
        super().__init__(status.message)
        self.status = status
        self.http_status = http_status


class CallerGone(grpc.aio.BaseError):
    """Nobody reads the answers any more."""


class RestContext(RequestShown):
    """Of one request. `stream`: what its answers are written to; None: it has one.

    `trailing`: headers of its answer, besides those of every one. `rehearses`: it is a dry run.
    """

    def __init__(self, request: web.Request, binding: Binding, stream: AnswerStream | None) -> None:
        super().__init__(request)
        self.request = request
        self._binding = binding
        self._stream = stream
        self.trailing: dict[str, str] = {}
        self.rehearses = False
        self._until_s = time.monotonic() + CALL_S

    def invocation_metadata(self) -> list[tuple[str, str]]:
        keys = [(KEY_HEADER.lower(), value) for value in self.request.headers.getall(KEY_HEADER, [])]
        return [*super().invocation_metadata(), *keys]

    def set_trailing_metadata(self, pairs: Iterable[tuple[str, str]]) -> None:
        self.trailing = dict(pairs)
        if self._stream is not None:
            self._stream.headers = self.trailing

    def time_remaining(self) -> float | None:
        """In seconds; None: it may last."""
        return None if self._stream is not None else max(self._until_s - time.monotonic(), 0.0)

    async def read(self) -> bytes:
        """The request's message. Raises RefusedMessage, Aborted."""
        raw = await self._body()
        if len(raw) < ASIDE_FROM:
            return self._message(raw)
        return await asyncio.get_running_loop().run_in_executor(self.request.config_dict[ASIDE], self._message, raw)

    async def write(self, message: Message) -> None:
        """Raises CallerGone."""
        assert self._stream is not None, "the answer of this method is one"
        try:
            await self._stream.write(message)
        except ConnectionError:
            raise CallerGone from None

    async def abort(
        self, code: grpc.StatusCode, details: str = "", trailing_metadata: Iterable[tuple[str, Any]] = ()
    ) -> NoReturn:
        rich = dict(trailing_metadata).get(DETAILS_KEY)
        number = code.value[0]
        status = status_pb2.Status(code=number, message=details) if rich is None else status_pb2.Status.FromString(rich)
        raise Aborted(status)

    async def _body(self) -> bytes:
        """Bounded before anything of it is parsed. Raises RefusedMessage, Aborted."""
        if not self.request.body_exists:
            return b""
        if not self._binding.has_body:
            if await self.request.content.read(1):
                raise RefusedMessage(f"{self.request.method} takes no body here; its fields stand in the query")
            return b""
        most, got = self._binding.most * JSON_FACTOR, bytearray()
        async for part in self.request.content.iter_any():
            got += part
            if len(got) > most:
                raise RefusedMessage(f"this body has more than {most} bytes, which are allowed here", too_large=True)
        if got.strip():
            self._check_type()
        return bytes(got)

    def _check_type(self) -> None:
        """Raises Aborted."""
        if words := packed(self.request):
            raise _unsupported(words)
        kind, charset = self.request.content_type, (self.request.charset or "utf-8").lower()
        if kind != "application/json" or charset not in {"utf-8", "utf8"}:
            raise _unsupported(
                f"a body of {self.request.headers.get(hdrs.CONTENT_TYPE, 'no type')!r:.100} is not taken; send"
                " `content-type: application/json`, in UTF-8"
            )

    def _condition(self, message: Message, reading: JsonReading) -> None:
        """If-Match, as the etag of the request. A method that knows none must not do what was to be conditional."""
        given = self.request.headers.getall(hdrs.IF_MATCH, [])
        if not given:
            return
        if _ETAG not in message.DESCRIPTOR.fields_by_name:
            reading.faults.append((hdrs.IF_MATCH, NO_CONDITION))
            return
        tags = [] if given == ["*"] else [tag.strip() for each in given for tag in each.split(",") if tag.strip()]
        if wrong := [tag for tag in tags if not _TAG.fullmatch(tag)]:
            reading.faults.append((hdrs.IF_MATCH, f'has {wrong[0]!r:.100}; it must be like "TAG", as ETag gives it'))
        # A weak tag is never the same as a strong one: RFC 9110, 13.1.1.
        strong = [tag.strip('"') for tag in tags if not tag.startswith("W/")]
        reading.fill(message, {_ETAG: ",".join(strong) or ("*" if given == ["*"] else _NONE)})

    def _message(self, raw: bytes) -> bytes:
        """Raises RefusedMessage."""
        binding, message, faults = self._binding, self._binding.request(), JsonReading(texts=False)
        given = read_body(raw)
        for name in binding.fields:
            if name in given:
                faults.faults.append((name, "stands in the path already; leave it out of the body"))
        faults.fill(message, given)
        of_url = JsonReading(texts=True)
        if binding.has_body:
            of_url.faults += [(shown(key), "belongs into the body, not into the query") for key in self.request.query]
        else:
            of_query = nested(message.DESCRIPTOR, self.request.query.items(), of_url.faults)
            last = self.request.headers.get(LAST_EVENT_ID) if _RESUMES in message.DESCRIPTOR.fields_by_name else None
            # A browser asks with the same query again, and the id is newer than what stands there.
            of_url.fill(message, of_query | ({_RESUMES: last} if last else {}))
            of_url.faults += [
                (name, "stands in the path already") for name in binding.fields if name in self.request.query
            ]
        self._condition(message, of_url)
        of_url.fill(message, {name: self.request.match_info[name] for name in binding.fields})
        if found := faults.faults + of_url.faults:
            raise RefusedMessage("; ".join(f"{field}: {words}" for field, words in found[:3]), found)
        self.rehearses = getattr(message, "dry_run", False)
        return message.SerializeToString()


def _unsupported(words: str) -> Aborted:
    status = refusal_of(words, too_large=False)
    status.code = code_pb2.INVALID_ARGUMENT
    return Aborted(status, 415)
