"""HTTP: for orchestrators, Prometheus and browsers that log in, and for paths that other parts add."""

import asyncio
import logging
import ssl
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Protocol

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from cronring.controller.api.connections import Connections, telling
from cronring.controller.api.judging import check
from cronring.controller.api.policy import Access, Audience, Reach
from cronring.controller.api.problems import counted_as
from cronring.controller.api.rest.answers import ASIDE
from cronring.controller.api.rest.cors import Cors
from cronring.controller.api.shown import RequestShown
from cronring.controller.api.web_identity import DOOR, WebDoor, web_principal
from cronring.controller.api.web_problems import problem, unserved
from cronring.controller.errors import CronringError, Denied
from cronring.controller.ports import fates
from cronring.controller.ports.audit_chain import OnRefusal
from cronring.controller.ports.caller import calling
from cronring.schema.identity import NOBODY, Permission

HANDSHAKE_S: Final = 10.0
# The right to see metrics, which are those of all namespaces.
METRICS: Final = Access(Audience.PEOPLE, Permission.VIEW, Reach.CLUSTER, 0)
BODY_BYTES_MAX: Final = 16 * 1024  # the form of a login


class Routed(Protocol):
    """Has paths of its own."""

    def add_to(self, router: web.UrlDispatcher) -> None: ...


class HttpServer:
    """`not_ready()` gives the reason, or None when ready; `metrics()` gives Prometheus' text.

    `refused` counts bytes that are no HTTP. They are answered with 400, and a traceback for each would flood the log.
    `door` says who asks; `routed` have the other paths. `cors` None: pages of other sites may not ask.
    `metrics_ask`: only callers who may view everything may read metrics.
    """

    def __init__(
        self,
        not_ready: Callable[[], str | None],
        metrics: Callable[[], bytes],
        refused: OnRefusal,
        door: WebDoor,
        *routed: Routed,
        cors: Cors | None = None,
        metrics_ask: bool = False,
    ) -> None:
        self._not_ready = not_ready
        self._metrics = metrics
        self._metrics_ask = metrics_ask
        self._connections = Connections(self._protocol)
        self._server: asyncio.Server | None = None
        middlewares: Any = [telling(lambda: self._connections), _problems_as_json(refused)]
        application = web.Application(middlewares=middlewares, client_max_size=BODY_BYTES_MAX)
        application[DOOR] = door
        # One thread, as in the Door: else callers decide how much memory large messages take at once.
        self._aside = application[ASIDE] = ThreadPoolExecutor(1, "large JSON")
        if cors is not None:
            cors.add_to(application)
        application.router.add_get("/healthz", self._alive)
        application.router.add_get("/readyz", self._ready)
        application.router.add_get("/metrics", self._show_metrics)
        for each in routed:
            each.add_to(application.router)
        log = logging.getLogger("aiohttp.server").getChild(str(id(self)))
        log.addFilter(lambda record: not _is_garbage(record, refused))
        self._runner = web.AppRunner(
            application,
            access_log=None,
            logger=log,
            handle_signals=False,
            shutdown_timeout=0.5,
            auto_decompress=False,  # the bodies that are read are small
            lingering_time=1.0,
        )

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> int:
        """Returns the port. It differs from `port` only if that was 0. Raises OSError when it is in use.

        With `tls` it is HTTPS, and nothing else.
        """
        await self._runner.setup()
        self._server = await asyncio.get_running_loop().create_server(
            self._connections, host, port, ssl=tls, ssl_handshake_timeout=HANDSHAKE_S if tls else None
        )
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        await self._runner.cleanup()
        self._aside.shutdown(wait=False, cancel_futures=True)

    def _protocol(self) -> asyncio.Protocol:
        assert self._runner.server is not None, "start() comes first"
        return self._runner.server()

    async def _alive(self, _: web.Request) -> web.Response:
        return web.json_response({"status": "alive"})

    async def _ready(self, _: web.Request) -> web.Response:
        reason = self._not_ready()
        if reason is None:
            return web.json_response({"status": "ready"})
        return web.json_response({"status": "not ready", "reason": reason}, status=503)

    async def _show_metrics(self, request: web.Request) -> web.Response:
        if self._metrics_ask:
            check(await web_principal(request), METRICS)
        return web.Response(body=self._metrics(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})


def _problems_as_json(refused: OnRefusal) -> object:
    """A middleware. An error becomes a problem with its status, and says whether the change was done. Refusals count.

    Changes go on record with the request's method and path. The handler finds out who the caller is.
    """

    @web.middleware
    async def answered(request: web.Request, handler: Callable[[web.Request], object]) -> web.StreamResponse:
        path, origin = f"{request.method} {request.path}", RequestShown(request).peer()
        with fates.call() as changed:
            try:
                with calling(NOBODY, path, origin):
                    response = await handler(request)  # type: ignore[misc]  # aiohttp's own Handler type isn't exported
            except CronringError as error:
                denied = error if isinstance(error, Denied) else None
                with calling((denied and denied.principal) or NOBODY, path, origin):
                    if what := counted_as(error):
                        refused(what, why=str(denied or ""))
                return problem(error, request, changed.fate)
            except web.HTTPException as error:
                if error.status < 400:
                    raise
                return unserved(error, request)
            except (ConnectionError, HttpProcessingError, web.RequestPayloadError):
                raise  # the client is gone, or speaks no HTTP
            except Exception as error:  # the boundary: whatever it is gets a status
                logging.getLogger("aiohttp.server").exception("http_error", exc_info=error)
                return problem(error, request, changed.fate)
        assert isinstance(response, web.StreamResponse)
        return response

    return answered


def _is_garbage(record: logging.LogRecord, refused: Callable[[str], None]) -> bool:
    """A line about bytes that are no HTTP, which is counted instead."""
    error = record.exc_info[1] if record.exc_info else None
    if not isinstance(error, HttpProcessingError):
        return False
    refused("http")
    return True
