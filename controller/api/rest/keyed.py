"""Idempotency-Key: a request that is repeated with its key is not done again, but answered as before, for a day.

docs/decisions/0080: what holds when a controller dies in between.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Final

import grpc
from google.protobuf.message import Message

from cronring.controller.api.rest.context import IDEMPOTENCY_KEY, RestContext
from cronring.controller.errors import KeyInUse, KeyReused, KeyUndecided, StoreError, StoreUnavailable
from cronring.controller.ports import fates
from cronring.controller.ports.caller import caller
from cronring.controller.ports.request_keys import FormerRequest, RequestKey, RequestKeys
from cronring.protos.problems import Fate

_FORGET_S: Final = 5.0  # a row that isn't gone by then is taken for one whose fate nobody knows


class KeyedDoor:
    """A Door's place, to servicers. What changes something is done once for each key; then the door has it."""

    def __init__(self, door: Any, keys: RequestKeys) -> None:
        self._door = door
        self._keys = keys
        self._forgetting: set[asyncio.Task[None]] = set()

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """As the door's."""

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Any]) -> None:
        """Raises UnjudgedMethodError."""
        self._door.add_registered_method_handlers(
            service, {method: self._keyed(f"/{service}/{method}", handler) for method, handler in handlers.items()}
        )

    def _keyed(self, rpc: str, handler: Any) -> Any:
        if handler.unary_unary is None:
            return handler
        behave = handler.unary_unary

        async def call(request: Message, context: RestContext) -> Any:
            if not context.key:
                return await behave(request, context)
            return await self._once(RequestKey(str(caller()), rpc, context.key), behave, request, context)

        return grpc.unary_unary_rpc_method_handler(
            call, request_deserializer=handler.request_deserializer, response_serializer=handler.response_serializer
        )

    async def _once(self, key: RequestKey, behave: Callable[..., Any], request: Message, context: RestContext) -> Any:
        """Raises KeyReused, KeyInUse, KeyUndecided, TooMany; and what `behave` does."""
        digest = hashlib.sha256(request.SerializeToString(deterministic=True)).digest()
        with fates.call():  # the key's row is none of what the request changes
            begun = await self._keys.begin(key, digest)
        if isinstance(begun, FormerRequest):
            return context.repeated(_answered(begun, digest))
        try:
            answer = await behave(request, context)
        except BaseException:
            if fates.fate() is Fate.NOT_DONE:
                # Not waited for: this call may have been given up, and PostgreSQL may be away.
                task = asyncio.get_running_loop().create_task(self._forget(key, begun))
                self._forgetting.add(task)
                task.add_done_callback(self._forgetting.discard)
            raise
        with fates.call(), contextlib.suppress(StoreUnavailable, StoreError):
            # If this fails it was done all the same, and nobody does it again: the key is undecided then.
            await self._keys.end(key, begun, answer.SerializeToString())
        return answer

    async def _forget(self, key: RequestKey, begun_at: int) -> None:
        with fates.call(), contextlib.suppress(StoreUnavailable, StoreError, TimeoutError):
            async with asyncio.timeout(_FORGET_S):
                await self._keys.forget(key, begun_at)


def _answered(former: FormerRequest, digest: bytes) -> bytes:
    """Raises KeyReused, KeyInUse, KeyUndecided."""
    if former.request_hash != digest:
        raise KeyReused(f"this {IDEMPOTENCY_KEY} was given before, with another request; take another key for this one")
    if former.answer is not None:
        return former.answer
    if not former.old:
        raise KeyInUse(f"a request with this {IDEMPOTENCY_KEY} is being done; come again in a moment")
    raise KeyUndecided(
        f"nobody knows whether the request of this {IDEMPOTENCY_KEY} was done: its controller ended meanwhile;"
        " look at what is there, and take another key if it wasn't"
    )
