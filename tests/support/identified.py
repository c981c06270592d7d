"""cronring.v1.Identities on real gRPC and PostgreSQL, in a thread of its own, for tests that are async and not."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import grpc

from cronring.controller.api.calls import Calls
from cronring.controller.api.door import Door
from cronring.controller.api.identities import IdentitiesService
from cronring.controller.api.judging import Insecure
from cronring.controller.ports.caller import calling
from cronring.controller.ports.identity import TokenRefused
from cronring.controller.services.tokens import TokenVerifier
from cronring.controller.store.pool import Database
from cronring.controller.store.tokens import PostgresTokens
from cronring.protos.cronring.v1 import identities_pb2, identities_pb2_grpc
from cronring.schema.identity import LOCAL, Principal
from tests.support.sealing import SEAL
from tests.support.waiting import TIMEOUT_S


class Identified:
    """Who brings a token is its principal; who brings none is `anybody`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.address = ""
        self.anybody: Principal = LOCAL
        self.heard: list[str] = []  # unforeseen errors

    def exception(self, event: str, error: BaseException) -> None:
        self.heard.append(f"{event}: {error!r}")

    async def serve(self, started: threading.Event, stop: asyncio.Event) -> None:
        database = await Database.open(self.url, "cronring test api")
        store = PostgresTokens(database)
        service = IdentitiesService(store, SEAL)
        verifier = TokenVerifier(store, time.monotonic_ns)
        for method in identities_pb2.DESCRIPTOR.services_by_name["Identities"].methods:
            setattr(service, method.name, self._identified(getattr(service, method.name), verifier))
        server = grpc.aio.server()
        door: Any = Door(server, lambda _: None, Calls(self, lambda _: None, lambda: None), Insecure())
        identities_pb2_grpc.add_IdentitiesServicer_to_server(service, door)
        self.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        await server.start()
        started.set()
        await stop.wait()
        await server.stop(grace=None)
        await database.close()

    def _identified(self, behave: Callable[..., Awaitable[Any]], verifier: TokenVerifier) -> Callable[..., Any]:
        async def answer(request: Any, context: Any) -> Any:
            carried = dict(context.invocation_metadata()).get("authorization", "")
            try:
                token = carried.removeprefix("Bearer ")
                principal = await verifier.principal(token) if carried else self.anybody
            except TokenRefused as error:
                await context.abort(grpc.StatusCode.UNAUTHENTICATED, str(error))
            with calling(principal):
                return await behave(request, context)

        return answer


@contextlib.contextmanager
def identified(url: str) -> Iterator[Identified]:
    """Listens on a free port of loopback until the end of the `with`."""
    api, started, loop, stop = Identified(url), threading.Event(), asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(api.serve(started, stop)))
    thread.start()
    try:
        assert started.wait(TIMEOUT_S)
        yield api
        assert api.heard == []
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(TIMEOUT_S)
        loop.close()
