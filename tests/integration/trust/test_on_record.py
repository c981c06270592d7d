"""Whoever is refused by a real controller for who they are is on record: as whom, by which method, from where, why."""

import contextlib
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any, Final

import grpc

from cronring.client import ClientError
from cronring.client.audit_log import AuditLogEntry
from cronring.protos.admission import ANSWER_BYTES_MAX
from cronring.protos.gossip.v1 import gossip_pb2, gossip_pb2_grpc
from cronring.protos.runner.v1 import runner_pb2, runner_pb2_grpc
from cronring.trust.certificates import Pair
from cronring.trust.channels import Tls, channel_to
from tests.integration.trust.conftest import House
from tests.support.fake_runner import FakeRunner, hello
from tests.support.waiting import wait_until

GATEWAY: Final = "/cronring.runner.v1.RunnerGateway/Connect"
UNKNOWN, FORBIDDEN = "UNAUTHENTICATED", "PERMISSION_DENIED"


@contextlib.asynccontextmanager
async def peer(house: House, certs: Path) -> AsyncIterator[grpc.aio.Channel]:
    """To --peer, by what is in that folder."""
    own = Pair((certs / "tls.crt").read_bytes(), (certs / "tls.key").read_bytes())
    tls = Tls(house.pki.trusted, own, "controller.cronring")
    async with channel_to(house.cluster.peers[0], answer_bytes=ANSWER_BYTES_MAX, tls=tls) as channel:
        yield channel


async def refused(call: Awaitable[Any]) -> None:
    with contextlib.suppress(ClientError, grpc.aio.AioRpcError):
        await call
        raise AssertionError("it was let in")


async def by_tokens(house: House) -> None:
    async with house.client() as client:
        gone = await house.token("gone", "viewer")
        await client.identities.revoke_token("gone")
    async with house.client(gone) as client:
        await refused(client.jobs.list())
    async with house.client("nothing.of.ours") as client:
        await refused(client.jobs.list())
    async with house.client(await house.token("view", "viewer")) as client:
        await refused(client.jobs.pause("invoices.each_second"))
    async with house.client(await house.token("boss", "admin")) as client:  # of the namespace `default`
        await refused(client.limits.set(7, namespace="prod"))
        await refused(client.audit_log.chain())


async def by_certificates(house: House) -> None:
    async with peer(house, house.pki.runner("nogrant")) as channel, FakeRunner(channel) as runner:
        assert (await runner.ended())[0] is grpc.StatusCode.UNAUTHENTICATED
    await house.grant("some", "invoices")
    async with peer(house, house.pki.runner("some")) as channel:
        gossip: Any = gossip_pb2_grpc.GossipStub(channel)
        await refused(gossip.Deliver(gossip_pb2.Packet()))
        async with FakeRunner(channel) as runner:
            await runner.say(hello=hello("default.other.1"))
            assert (await runner.ended())[0] is grpc.StatusCode.PERMISSION_DENIED
    await house.grant("few", "invoices")
    async with peer(house, house.pki.runner("few")) as channel, FakeRunner(channel) as runner:
        welcome = await runner.introduce(hello("few.host-1"))
        assert "is for modules invoices" in welcome.modules[0].problem
    tls = Tls(house.pki.trusted, None, "controller.cronring")
    async with channel_to(house.address, answer_bytes=ANSWER_BYTES_MAX, tls=tls) as channel:
        stub: Any = runner_pb2_grpc.EnrollmentStub(channel)
        await refused(stub.Enroll(runner_pb2.EnrollRequest(join_token="crj_nothing")))  # it is none


async def test_each_kind_of_refusal_leaves_its_row(house: House) -> None:
    await by_tokens(house)
    await by_certificates(house)
    uri = "runner:spiffe://cronring/runner/default/"
    wanted = {
        (UNKNOWN, "token:gone", "/cronring.v1.Jobs/ListJobs", "the token 'gone' was revoked"),
        (UNKNOWN, "local:nobody", "/cronring.v1.Jobs/ListJobs", "no kind that this controller knows"),
        (FORBIDDEN, "token:view", "/cronring.v1.Jobs/PauseJob", "token:view has viewer@default"),
        (FORBIDDEN, "token:boss", "/cronring.v1.Limits/SetLimit", "admin in namespace 'prod'"),
        (FORBIDDEN, "token:boss", "/cronring.v1.AuditLog/ReadAuditChain", "admin in all namespaces"),
        (UNKNOWN, f"{uri}nogrant", GATEWAY, "there is no runner grant 'nogrant'"),
        (FORBIDDEN, f"{uri}some", "/cronring.gossip.v1.Gossip/Deliver", "this is for controllers"),
        (FORBIDDEN, f"{uri}some", GATEWAY, "is not the certificate of 'default.other.1'"),
        (FORBIDDEN, f"{uri}few", GATEWAY, "is for modules invoices of namespace 'default'"),
        (UNKNOWN, "local:nobody", "/cronring.runner.v1.Enrollment/Enroll", "this is no join token"),
    }
    rows: list[AuditLogEntry] = []

    def is_there(code: str, principal: str, method: str, why: str) -> bool:
        return any(
            (row.refused, row.principal, row.method) == (code, principal, method) and why in row.remark for row in rows
        )

    async def all_there() -> bool:
        async with house.client() as client:
            rows[:] = await client.audit_log.list(refused_only=True)
        return all(is_there(*each) for each in wanted) and all(row.seq for row in rows)

    await wait_until(all_there, lambda: "\n".join(map(str, [*rows, *(w for w in wanted if not is_there(*w))])))
    assert {row.origin for row in rows} == {"127.0.0.1"}
    assert all(row.controller and row.before is row.after is None for row in rows)
    assert not any(secret in str(rows) for secret in ("nothing.of.ours", "crj_nothing"))
    log = house.cluster.controllers[0].log.read_text()
    assert "audit_log_sealed" in log
