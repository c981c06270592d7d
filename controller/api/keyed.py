"""Idempotency-Key: for a day, a request that is repeated with its key is not done again, but answered as before.

It is the same for gRPC and REST. docs/decisions/0080: what holds when a controller dies in between.
docs/decisions/0097: a request that has begun goes on without its caller.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

import grpc
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.message import Message

from cronring.controller.api.calls import CALLER_GONE
from cronring.controller.api.keyed_streams import FINISH_S, KeyedStreams
from cronring.controller.api.problems import InvalidRequest
from cronring.controller.errors import KeyInUse, KeyReused, KeyUndecided, StoreError, StoreUnavailable
from cronring.controller.ports import fates
from cronring.controller.ports.caller import caller
from cronring.controller.ports.request_keys import FormerRequest, RequestKey, RequestKeys
from cronring.protos.idempotency import KEY_HEADER, REPLAYED, is_key, why_no_key
from cronring.protos.problems import Fate

Services = Sequence[tuple[str, Callable[[Any], None]]]
Answer = TypeVar("Answer")

_FORGET_S: Final = 5.0  # a row that isn't deleted by then stays, and its request counts as undecided


def keyed(services: Services, keys: RequestKeys) -> Services:
    """The same services, whose requests with a key are done once."""
    once = Once(keys)

    def add_to(add: Callable[[Any], None], server: Any) -> None:
        add(_KeyedServer(server, once))

    return [(name, partial(add_to, add)) for name, add in services]


class _KeyedServer:
    """A server's place, to servicers."""

    def __init__(self, server: Any, once: "Once") -> None:
        self._server = server
        self._once = once
        self._streams = KeyedStreams()

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """As the door's."""

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Any]) -> None:
        """Raises UnjudgedMethodError."""
        pool: Any = descriptor_pool.Default()
        found = pool.FindServiceByName(service).methods_by_name
        self._server.add_registered_method_handlers(
            service, {name: self._handler(found[name], handler) for name, handler in handlers.items()}
        )

    def _handler(self, method: Any, handler: Any) -> Any:
        coders = {
            "request_deserializer": handler.request_deserializer,
            "response_serializer": handler.response_serializer,
        }
        if handler.unary_stream is not None:
            return grpc.unary_stream_rpc_method_handler(self._streaming(method, handler.unary_stream), **coders)
        if handler.unary_unary is None:
            return handler
        behave = handler.unary_unary
        kind = message_factory.GetMessageClass(method.output_type)

        async def call(request: Message, context: Any) -> Any:
            asked = _asked(method, request, context)
            if asked is None:
                return await behave(request, context)
            answer = await self._once.former_or_done(*asked, partial(behave, request, context), _bytes_of)
            if not isinstance(answer, bytes):
                return answer
            _replayed(context)
            return kind.FromString(answer)

        return grpc.unary_unary_rpc_method_handler(call, **coders)

    def _streaming(self, method: Any, behave: Callable[..., Any]) -> Callable[..., Any]:
        kind = message_factory.GetMessageClass(method.output_type)

        async def answers(request: Message, context: Any) -> Any:
            asked = _asked(method, request, context)
            made = partial(behave, request, context)
            if asked is None:
                found = made()
            else:
                once = partial(self._once.former_or_done, *asked)
                found = self._streams.answers(made, once, kind, partial(_replayed, context))
            async with contextlib.aclosing(found) as messages:
                async for message in messages:
                    yield message

        return answers


def _asked(method: Any, request: Message, context: Any) -> tuple[RequestKey, bytes] | None:
    """The key of a request, and the digest of the request. None: it has no key.

    The key of a dry run is ignored, as it changes nothing. So the same key may be used for the real request after it.
    """
    key = _key(method, context)
    if not key or getattr(request, "dry_run", False):
        return None
    whole = RequestKey(str(caller()), f"/{method.containing_service.full_name}/{method.name}", key)
    return whole, hashlib.sha256(request.SerializeToString(deterministic=True)).digest()


def _replayed(context: Any) -> None:
    context.set_trailing_metadata(((REPLAYED.lower(), "true"),))


def _key(method: Any, context: Any) -> str:
    """That of this call; as `only_key`."""
    given = [str(value) for name, value in context.invocation_metadata() or () if name == KEY_HEADER.lower()]
    return only_key(given, why_no_key(method)) if given else ""


def only_key(given: Sequence[str], words: str) -> str:
    """The one key that a call gives; "": none. `words`: why this method takes no key, or "".

    Raises InvalidRequest for a malformed key, for several, and for a key where none is taken.
    """
    if not given:
        return ""
    if not words and (len(given) > 1 or not is_key(given[0])):
        words = "must be one, of 1 to 255 visible characters of ASCII"
    if words:
        raise InvalidRequest([(KEY_HEADER, words)])
    return given[0]


def _bytes_of(message: Message) -> bytes:
    return message.SerializeToString()


class Once:
    """Of all that have the same keys: services, and routes that are no service's."""

    def __init__(self, keys: RequestKeys) -> None:
        self._keys = keys
        self._forgetting: set[asyncio.Task[None]] = set()

    async def former_or_done(
        self,
        key: RequestKey,
        digest: bytes,
        behave: Callable[[], Awaitable[Answer]],
        written: Callable[[Answer], bytes],
    ) -> Answer | bytes:
        """What was answered before, as bytes; or what is answered now, which is kept as `written`.

        `digest`: of what is asked for, as SHA-256.

        Raises KeyReused, KeyInUse, KeyUndecided, TooManyKeys; and what `behave` does.
        """
        begun = await self._begun(key, digest)
        if isinstance(begun, FormerRequest):
            return _answered(begun, digest)
        doing = asyncio.get_running_loop().create_task(self._done(key, begun, behave, written))
        try:
            return await asyncio.shield(doing)
        except asyncio.CancelledError as error:
            if CALLER_GONE in error.args:
                # The caller has lost its connection, and will ask again by another one. The request goes on, and keeps
                # its place among the calls in hand.
                await asyncio.wait([doing], timeout=FINISH_S)
            raise
        finally:
            doing.cancel()
            doing.add_done_callback(_noticed)
            del doing  # with its error it would keep this frame, and the request in it

    async def _begun(self, key: RequestKey, digest: bytes) -> FormerRequest | int:
        beginning = asyncio.get_running_loop().create_task(self._begin(key, digest))
        try:
            return await asyncio.shield(beginning)
        except asyncio.CancelledError:
            # Its row may be written already. If it stayed, it would claim for minutes that the request is being done.
            beginning.add_done_callback(partial(self._given_up, key))
            raise

    async def _begin(self, key: RequestKey, digest: bytes) -> FormerRequest | int:
        with fates.beside():  # the key's row doesn't count as a change of the request
            return await self._keys.begin(key, digest)

    def _given_up(self, key: RequestKey, beginning: "asyncio.Task[FormerRequest | int]") -> None:
        if beginning.cancelled() or beginning.exception() is not None:
            return
        begun = beginning.result()
        if not isinstance(begun, FormerRequest):
            self._forget_soon(key, begun)

    async def _done(
        self,
        key: RequestKey,
        begun_at: int,
        behave: Callable[[], Awaitable[Answer]],
        written: Callable[[Answer], bytes],
    ) -> Answer:
        try:
            answer = await behave()
        except BaseException:
            if fates.fate() is Fate.NOT_DONE:
                self._forget_soon(key, begun_at)
            raise
        with fates.beside(), contextlib.suppress(StoreUnavailable, StoreError):
            # If this fails, the request was done all the same. Its key is then undecided, so it is not done again.
            await self._keys.end(key, begun_at, written(answer))
        return answer

    def _forget_soon(self, key: RequestKey, begun_at: int) -> None:
        """Not waited for: the call may have been given up, and PostgreSQL may be away."""
        task = asyncio.get_running_loop().create_task(self._forget(key, begun_at))
        self._forgetting.add(task)
        task.add_done_callback(self._forgetting.discard)

    async def _forget(self, key: RequestKey, begun_at: int) -> None:
        with fates.beside(), contextlib.suppress(StoreUnavailable, StoreError, TimeoutError):
            async with asyncio.timeout(_FORGET_S):
                await self._keys.forget(key, begun_at)


def _noticed(task: "asyncio.Task[Any]") -> None:
    """Read the error of a task whose caller is gone, or asyncio complains that nobody has retrieved it."""
    if not task.cancelled():
        task.exception()


def _answered(former: FormerRequest, digest: bytes) -> bytes:
    """Raises KeyReused, KeyInUse, KeyUndecided."""
    if former.request_hash != digest:
        raise KeyReused(f"this {KEY_HEADER} was given before, with another request; take another key for this one")
    if former.answer is not None:
        return former.answer
    if not former.old:
        raise KeyInUse(f"a request with this {KEY_HEADER} is being done; come again in a moment")
    raise KeyUndecided(
        f"nobody knows whether the request of this {KEY_HEADER} was done: its controller ended meanwhile;"
        " look at what is there, and take another key if it wasn't"
    )
