"""Who calls without end, or never says a word, at a cluster as it is deployed: others, and the ticks, go on."""

import asyncio
import contextlib
import os
import socket
import ssl
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import grpc
import pytest

from cronring.client import AsyncClient
from cronring.controller.api.server import HANDSHAKE_S
from cronring.controller.services.identities import WantedToken, make_token
from cronring.controller.store.pool import Database
from cronring.controller.store.tokens import PostgresTokens
from cronring.protos.cronring.v1 import identities_pb2, identities_pb2_grpc, jobs_pb2, jobs_pb2_grpc
from cronring.protos.problems import Reason, said
from cronring.schema.identity import Role
from cronring.schema.spiffe import server_name
from cronring.trust.channels import Tls, channel_to
from tests.attacks.test_strangers import MODULE
from tests.support.databases import run_coroutine
from tests.support.secured import CLUSTER, SecuredCluster
from tests.support.waiting import TIMEOUT_S, wait_until

CALLS: Final = 300
BURST: Final = 50
STREAMS: Final = 3
CALLERS: Final = ("greedy", "modest", "watcher", "prometheus", "asker")
SLOW: Final = 1_000
NAME: Final = server_name(CLUSTER)
_HTTP2: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


@pytest.fixture(scope="module")
def flooded(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    """A controller of small allowances, and a runner that has a run each second."""
    folder = tmp_path_factory.mktemp("flooded")
    limits = ("--call-rate", "1", "--call-burst", str(BURST), "--streams", str(STREAMS), "--metrics-auth", "token")
    with SecuredCluster(module_database_url, folder) as made:
        made.start_controller(*limits)
        made.let_in()
        (folder / "beats.py").write_text(MODULE)
        made.start_runner(folder / "beats.py")
        yield made


async def created(url: str) -> dict[str, str]:
    """A token for each of CALLERS, who may view everything."""
    database = await Database.open(url, "test", 1)
    try:
        store = PostgresTokens(database)
        wanted = [WantedToken(name, ((Role.VIEWER, "*"),), None, "tests") for name in CALLERS]
        return {each.name: (await make_token(store, each))[1] for each in wanted}
    finally:
        await database.close()


@pytest.fixture(scope="module")
def tokens(flooded: SecuredCluster) -> dict[str, str]:
    return run_coroutine(created(flooded.database_url))


def client(cluster: SecuredCluster, secret: str) -> AsyncClient:
    return AsyncClient([cluster.controllers[0].grpc], 30, token=secret, ca=cluster.pki.ca, insecure=False)


def channel(cluster: SecuredCluster) -> grpc.aio.Channel:
    tls = Tls(cluster.pki.ca.read_bytes(), None, NAME)
    return channel_to(cluster.controllers[0].grpc, answer_bytes=1 << 20, tls=tls)


def bearer(secret: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {secret}"),)


async def outcome(call: Any) -> tuple[grpc.StatusCode, str, float | None]:
    """Its code, and what the controller says of it."""
    try:
        await call
    except grpc.aio.AioRpcError as error:
        trailing: Any = error.trailing_metadata()
        word = said(trailing)
        assert word is not None
        return error.code(), word.reason, word.retry_s
    return grpc.StatusCode.OK, "", None


async def test_a_greedy_token_is_sent_away_and_another_is_not(flooded: SecuredCluster, tokens: dict[str, str]) -> None:
    greedy = tokens["greedy"]
    async with channel(flooded) as raw, client(flooded, tokens["modest"]) as others:
        who = identities_pb2_grpc.IdentitiesStub(raw)
        asked = [who.WhoAmI(identities_pb2.WhoAmIRequest(), metadata=bearer(greedy)) for _ in range(CALLS)]
        answers = await asyncio.gather(*map(outcome, asked))
        assert (await others.identities.who_am_i()).name == "modest"
        await others.jobs.list()
    codes = Counter(code for code, _, _ in answers)
    assert BURST <= codes[grpc.StatusCode.OK] < CALLS / 2, codes
    refused = [(reason, retry_s) for code, reason, retry_s in answers if code is grpc.StatusCode.RESOURCE_EXHAUSTED]
    assert len(refused) + codes[grpc.StatusCode.OK] == CALLS
    assert {reason for reason, _ in refused} == {Reason.RATE_LIMITED}
    assert all(retry_s is not None and 0 < retry_s <= 1 for _, retry_s in refused)


async def test_a_token_has_so_many_streams(flooded: SecuredCluster, tokens: dict[str, str]) -> None:
    async with channel(flooded) as raw:
        stub: Any = jobs_pb2_grpc.JobsStub(raw)
        watches = [
            stub.WatchJobs(jobs_pb2.WatchJobsRequest(), metadata=bearer(tokens["watcher"])) for _ in range(STREAMS)
        ]
        for watch in watches:
            await watch.read()
        one_more = stub.WatchJobs(jobs_pb2.WatchJobsRequest(), metadata=bearer(tokens["watcher"]))
        assert await outcome(one_more.read()) == (grpc.StatusCode.RESOURCE_EXHAUSTED, Reason.TOO_MANY, 5.0)
        assert await stub.WatchJobs(jobs_pb2.WatchJobsRequest(), metadata=bearer(tokens["modest"])).read()


def test_metrics_ask_for_a_token(flooded: SecuredCluster, tokens: dict[str, str]) -> None:
    metrics = ask_http(flooded, "/metrics", tokens["prometheus"])[1]
    assert "cronring_caller_streams" in metrics
    assert ask_http(flooded, "/metrics", "wrong")[0] == ask_http(flooded, "/metrics", "")[0] == 401
    assert ask_http(flooded, "/readyz", "")[0] == 200


def ask_http(cluster: SecuredCluster, path: str, secret: str) -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {secret}"} if secret else {}
    request = urllib.request.Request(f"https://{cluster.controllers[0].http}{path}", headers=headers)
    context = ssl.create_default_context(cafile=os.fspath(cluster.pki.ca))
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=context) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refusal:
        return refusal.code, ""


def connect(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=TIMEOUT_S)


def client_hello(ca: Path) -> bytes:
    """What a TLS handshake begins with."""
    context, there, here = ssl.create_default_context(cafile=os.fspath(ca)), ssl.MemoryBIO(), ssl.MemoryBIO()
    begun = context.wrap_bio(there, here, server_hostname=NAME)
    with contextlib.suppress(ssl.SSLWantReadError):
        begun.do_handshake()
    return here.read()


def encrypted(cluster: SecuredCluster, address: str, protocol: str) -> socket.socket:
    """After the whole handshake, and with nobody's certificate."""
    context = ssl.create_default_context(cafile=os.fspath(cluster.pki.ca))
    context.set_alpn_protocols([protocol])
    return context.wrap_socket(connect(address), server_hostname=NAME)


def is_closed(connection: socket.socket) -> bool:
    """By the other end."""
    connection.setblocking(False)
    try:
        return connection.recv(65_536) == b""
    except (BlockingIOError, ssl.SSLWantReadError):
        return False
    except OSError:
        return True


async def runs(asker: AsyncClient) -> int:
    """The latest that has ended."""
    found = await asker.executions.list(limit=1, outcome="completed")
    return found[0].id if found else 0


async def test_a_thousand_that_never_finish_speaking_are_hung_up_on(
    flooded: SecuredCluster, tokens: dict[str, str]
) -> None:
    controller = flooded.controllers[0]
    hello = client_hello(flooded.pki.ca)

    def half_http() -> socket.socket:
        found = encrypted(flooded, controller.http, "http/1.1")
        found.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\nX-")
        return found

    def begun(address: str, said_first: bytes) -> Callable[[], socket.socket]:
        def make() -> socket.socket:
            found = connect(address)
            found.sendall(said_first)
            return found

        return make

    def prefaced() -> socket.socket:
        found = encrypted(flooded, controller.grpc, "h2")
        found.sendall(_HTTP2[:10])
        return found

    ports = (controller.grpc, flooded.peers[0], controller.http)
    kinds = [begun(port, first) for port in ports for first in (b"", hello[:50], hello)] + [half_http, prefaced]
    asker = client(flooded, tokens["asker"])
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(await asyncio.to_thread(kinds[n % len(kinds)])) for n in range(SLOW)]
        async with asker:
            before = await runs(asker)

            async def ran_on() -> bool:
                return await runs(asker) > before

            await wait_until(ran_on, "nothing runs beside them")

            async def all_are_gone() -> bool:
                slow[:] = [connection for connection in slow if not is_closed(connection)]
                return not slow

            loop = asyncio.get_running_loop()
            began = loop.time()
            await wait_until(all_are_gone, "some are still open")
            assert loop.time() - began < HANDSHAKE_S + TIMEOUT_S / 2
    assert controller.alive(), controller.tail()
    assert "Traceback" not in controller.log.read_text(errors="replace"), controller.tail(60)
