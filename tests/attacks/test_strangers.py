"""Who does not belong reaches every port, and gets in at none: each of these once took slots, results or modules."""

import asyncio
import datetime as dt
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

import grpc
import pytest

from cronring.protos.cronring.v1 import jobs_pb2, jobs_pb2_grpc
from cronring.protos.gossip.v1 import gossip_pb2, gossip_pb2_grpc
from cronring.protos.runner.v1 import runner_pb2, runner_pb2_grpc
from cronring.schema.spiffe import controller_name, runner_name, server_name
from cronring.trust.channels import Tls, channel_to
from tests.support.cluster import Cluster
from tests.support.forging import shown
from tests.support.secured import CLUSTER, Pki, SecuredCluster

NAME: Final = server_name(CLUSTER)
CALL_S: Final = 10.0
MODULE: Final = "from cronring import every\n\n\n@every('1s')\ndef beat() -> None: ...\n"
Code = grpc.StatusCode


@pytest.fixture(scope="module")
def cluster(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    """One controller that belongs, and a runner of grant `tests`."""
    with SecuredCluster(module_database_url, tmp_path_factory.mktemp("secured")) as made:
        made.start_controller()
        made.environment["CRONRING_TOKEN"] = made.on_database(
            "token", "create", "--name", "root", "--role", "admin", "--namespace", "*"
        )
        granted = made.ask("runner-grant", "create", "--name", "tests", "--certificate-only", "--may-activate")
        assert granted.returncode == 0, granted.stderr
        yield made


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    """Of somebody else, who calls their cluster the same."""
    return Pki(tmp_path_factory.mktemp("others"))


def packet(sender: str) -> gossip_pb2.Packet:
    update = gossip_pb2.Update(
        member_id="intruder", address="127.0.0.1:1", status=gossip_pb2.STATUS_ALIVE, incarnation=1
    )
    return gossip_pb2.Packet(sender_id=sender, sender_address="127.0.0.1:1", sync=gossip_pb2.Sync(table=[update]))


def hello(runner_id: str) -> runner_pb2.RunnerMessage:
    return runner_pb2.RunnerMessage(hello=runner_pb2.Hello(runner_id=runner_id, hostname="elsewhere", version="1"))


async def gossips(address: str, tls: Tls | None, sender: str) -> Code:
    async with channel_to(address, answer_bytes=4096, tls=tls) as channel:
        try:
            await gossip_pb2_grpc.GossipStub(channel).Deliver(packet(sender), timeout=CALL_S)
        except grpc.aio.AioRpcError as error:
            return error.code()
        return Code.OK


async def connects(address: str, tls: Tls | None, runner_id: str) -> Code:
    """What a stream ends with; OK: it is welcome."""
    code = Code.INTERNAL
    for _ in range(10):
        # The client's gRPC calls it INTERNAL where its own write meets the end of a call that is refused unread.
        code = await _connects_once(address, tls, runner_id)
        if code is not Code.INTERNAL:
            break
    return code


async def _connects_once(address: str, tls: Tls | None, runner_id: str) -> Code:
    async with channel_to(address, answer_bytes=1 << 20, tls=tls) as channel:
        stub: Any = runner_pb2_grpc.RunnerGatewayStub(channel)
        stream = stub.Connect(timeout=CALL_S)
        try:
            await stream.write(hello(runner_id))
            answer = await stream.read()
            code: Code = Code.OK if isinstance(answer, runner_pb2.ControllerMessage) else await stream.code()
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            code = await stream.code()
        finally:
            stream.cancel()
        return code


async def lists(address: str, tls: Tls | None, metadata: tuple[tuple[str, str], ...] = ()) -> Code:
    async with channel_to(address, answer_bytes=1 << 20, tls=tls) as channel:
        try:
            await jobs_pb2_grpc.JobsStub(channel).ListJobs(
                jobs_pb2.ListJobsRequest(), timeout=CALL_S, metadata=metadata
            )
        except grpc.aio.AioRpcError as error:
            return error.code()
        return Code.OK


async def owners(cluster: SecuredCluster, name: str) -> list[str]:
    """Of the ring, as a controller has it: those whose id begins so."""
    async with cluster.client() as client:
        ring = await client.cluster.ring()
    assert ring.members
    return [each for each in ring.members if each.startswith(name)]


@pytest.fixture
async def unharmed(cluster: SecuredCluster) -> AsyncIterator[SecuredCluster]:
    """Whatever a test tried: the ring is the controllers' own, and nobody fell over."""
    yield cluster
    assert await owners(cluster, "intruder") == []
    process = cluster.controllers[0]
    assert process.alive(), process.tail()
    assert "Traceback" not in process.log.read_text(errors="replace"), process.tail(60)


async def test_without_a_certificate_nobody_gets_to_a_port_of_members(unharmed: SecuredCluster, others: Pki) -> None:
    peer, roots = unharmed.peers[0], unharmed.pki.trusted
    strangers = {
        "plaintext": None,
        "no certificate": Tls(roots, None, NAME),
        "another CA's": shown(others.controller("c1"), roots),
        "another CA's runner": shown(others.runner("tests"), roots),
    }
    for who, tls in strangers.items():
        assert await gossips(peer, tls, "c1-000000") is Code.UNAVAILABLE, who
        assert await connects(peer, tls, "tests.a") is Code.UNAVAILABLE, who


async def test_an_expired_certificate_connects_nobody(unharmed: SecuredCluster) -> None:
    pki = unharmed.pki
    folder = pki.issue(controller_name(CLUSTER, "late"), dt.timedelta(minutes=-4), "expired")
    assert await gossips(unharmed.peers[0], shown(folder, pki.trusted), "late-000000") is Code.UNAVAILABLE


async def test_the_port_of_people_knows_no_members(unharmed: SecuredCluster) -> None:
    pki, port = unharmed.pki, unharmed.controllers[0].grpc
    own = shown(pki.controller("c1"), pki.trusted)
    assert await gossips(port, own, "c1-000000") is Code.UNIMPLEMENTED
    assert await connects(port, own, "tests.a") is Code.UNIMPLEMENTED
    assert await lists(unharmed.peers[0], own) is Code.UNIMPLEMENTED


async def test_a_certificate_is_no_token(unharmed: SecuredCluster) -> None:
    pki, port = unharmed.pki, unharmed.controllers[0].grpc
    for folder in (pki.controller("c1"), pki.runner("tests")):
        assert await lists(port, shown(folder, pki.trusted)) is Code.UNAUTHENTICATED


async def test_a_runner_is_no_controller_and_a_controller_no_runner(unharmed: SecuredCluster) -> None:
    pki, peer = unharmed.pki, unharmed.peers[0]
    runner, controller = shown(pki.runner("tests"), pki.trusted), shown(pki.controller("c1"), pki.trusted)
    assert await gossips(peer, runner, "tests.a") is Code.PERMISSION_DENIED
    assert await connects(peer, controller, "c1-000000") is Code.PERMISSION_DENIED


async def test_nobody_speaks_as_another(unharmed: SecuredCluster) -> None:
    """A controller by its own certificate as one of others; a runner in the place of another grant's runner."""
    pki, peer = unharmed.pki, unharmed.peers[0]
    second = shown(pki.issue(controller_name(CLUSTER, "c2")), pki.trusted)
    assert await gossips(peer, second, "c1-000000") is Code.PERMISSION_DENIED
    assert await gossips(peer, second, "c2-000000") is Code.OK
    runner = shown(pki.runner("tests"), pki.trusted)
    for name in ("billing.host-1", "testsx.host-1", "tests-2.host", "host-1"):
        assert await connects(peer, runner, name) is Code.PERMISSION_DENIED, name
    assert await connects(peer, runner, "tests.host-1") is Code.OK


async def test_a_runner_without_a_grant_is_not_let_in(unharmed: SecuredCluster) -> None:
    pki, peer = unharmed.pki, unharmed.peers[0]
    assert await connects(peer, shown(pki.runner("nobody"), pki.trusted), "nobody.a") is Code.UNAUTHENTICATED
    elsewhere = pki.issue(runner_name(CLUSTER, "elsewhere", "tests"), where="elsewhere")
    assert await connects(peer, shown(elsewhere, pki.trusted), "tests.a") is Code.UNAUTHENTICATED


async def test_a_member_that_gossip_alone_knows_owns_nothing(unharmed: SecuredCluster) -> None:
    """Even one with a certificate: that lets it speak, and a row in PostgreSQL makes it an owner."""
    pki = unharmed.pki
    second = shown(pki.issue(controller_name(CLUSTER, "c2")), pki.trusted)
    assert await gossips(unharmed.peers[0], second, "c2-000000") is Code.OK
    assert await owners(unharmed, "c2-000000") == []


async def test_plaintext_and_guessed_tokens_open_nothing(unharmed: SecuredCluster) -> None:
    port, roots = unharmed.controllers[0].grpc, unharmed.pki.trusted
    people = Tls(roots, None, NAME)
    assert await lists(port, None) is Code.UNAVAILABLE
    assert await lists(port, people) is Code.UNAUTHENTICATED
    for guess in ("Bearer x", "Bearer ", "Basic cm9vdDpyb290", "Bearer crt_" + "A" * 43 + "_000000"):
        assert await lists(port, people, (("authorization", guess),)) is Code.UNAUTHENTICATED, guess
    right = unharmed.environment["CRONRING_TOKEN"]
    assert await lists(port, people, (("authorization", f"Bearer {right}"),)) is Code.OK
    assert await lists(port, people, (("authorization", f"Bearer {right[:-1]}0"),)) is not Code.OK or right[-1] == "0"


async def test_with_insecure_each_of_these_gets_in(attacked: Cluster) -> None:
    """That is what makes the tests above ones: the same probes, where nothing stands in their way."""
    port = attacked.controllers[0].grpc
    assert await gossips(port, None, "intruder") is Code.OK
    assert await connects(port, None, "tests.a") is Code.OK
    assert await lists(port, None) is Code.OK
