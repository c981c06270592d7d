"""cronring.v1.Identities and AuditLog on real gRPC and PostgreSQL, in a thread: for tests that are async, and not."""

import asyncio
import contextlib
import itertools
import threading
import time
from collections.abc import Iterator
from typing import Any

import grpc

from cronring.controller.api.audit_log import AuditLogService
from cronring.controller.api.calls import Calls
from cronring.controller.api.door import Door
from cronring.controller.api.identities import IdentitiesService
from cronring.controller.api.judging import Known
from cronring.controller.api.policy import Access
from cronring.controller.api.shown import Shown
from cronring.controller.services.tokens import TokenVerifier
from cronring.controller.store.audit_chain import PostgresAuditLog
from cronring.controller.store.pool import Database
from cronring.controller.store.tokens import PostgresTokens
from cronring.controller.store.web_sessions import PostgresWebSessions
from cronring.protos.cronring.v1 import audit_log_pb2_grpc, identities_pb2_grpc
from cronring.schema.identity import LOCAL, Principal
from tests.support.boxes import BOX
from tests.support.callers import counting, no_certificate, unlimited
from tests.support.threaded import in_thread


class Identified:
    """Who brings a token is its principal, asked anew at every call; who brings none is `anybody`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.address = ""
        self.anybody: Principal = LOCAL
        self.heard: list[str] = []  # unforeseen errors

    def exception(self, event: str, error: BaseException) -> None:
        self.heard.append(f"{event}: {error!r}")

    async def serve(self, started: threading.Event, stop: asyncio.Event) -> None:
        database = await Database.open(self.url, "cronring test api")
        store, later = PostgresTokens(database), itertools.count(step=60)
        known = Known([TokenVerifier(store, time.monotonic_ns)], no_certificate, unlimited(), now_s=lambda: next(later))
        server = grpc.aio.server()
        door: Any = Door(server, counting([]), Calls(self, counting([]), lambda: None), _Judge(self, known))
        identities_pb2_grpc.add_IdentitiesServicer_to_server(
            IdentitiesService(store, PostgresWebSessions(database), BOX), door
        )
        audit_log = AuditLogService(PostgresAuditLog(database), BOX)
        audit_log_pb2_grpc.add_AuditLogServicer_to_server(audit_log, door)
        self.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        await server.start()
        started.set()
        await stop.wait()
        await server.stop(grace=None)
        await database.close()


class _Judge:
    def __init__(self, api: Identified, known: Known) -> None:
        self._api = api
        self._known = known

    async def judged(self, access: Access, context: Any) -> Principal:
        carried = dict(context.invocation_metadata() or ())
        return await self._known.judged(access, context) if "authorization" in carried else self._api.anybody

    async def holder(self, shown: Shown) -> Principal:
        return await self._known.holder(shown)

    async def still(self, principal: Principal, access: Access, context: Any) -> None:
        """No method of them goes on."""

    def streaming(self, principal: Principal, access: Access, context: Any) -> contextlib.AbstractContextManager[None]:
        return self._known.streaming(principal, access, context)


@contextlib.contextmanager
def identified(url: str) -> Iterator[Identified]:
    """Listens on a free port of loopback until the end of the `with`."""
    api = Identified(url)
    with in_thread(api.serve):
        yield api
        assert api.heard == []
