"""Members that lie about who they are and what they ran: each is told no, and the books stay as they were."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import grpc
import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from cronring.client import NotFound
from cronring.client.identities import RoleIn
from cronring.protos.cronring.v1 import schema_pb2
from cronring.protos.runner.v1 import runner_pb2 as wire
from cronring.protos.runner.v1 import runner_pb2_grpc
from cronring.schema.spiffe import controller_name
from cronring.trust.certificates import Pair, PrivateKey, certificates_of, key_pem, name_in, new_key, request_for
from cronring.trust.channels import Tls, channel_to, listen
from cronring.trust.holding import CertificateFolder
from tests.attacks.test_strangers import CALL_S, NAME, Code, connects, gossips, owners
from tests.faults.liars import Stream
from tests.support.forging import greedy_request, held, shown
from tests.support.looking import look
from tests.support.secured import CLUSTER, SecuredCluster
from tests.support.waiting import wait_until

MODULE: Final = """import time
from cronring import cron, every


@every("1s")
def beat() -> None: ...


@cron("0 0 1 1 *")
def export() -> None:
    time.sleep(600)
"""
RUNNING: Final = """
SELECT id, job_id, runner_id, (extract(epoch FROM claimed_at) * 1000000)::bigint AS claimed_at
FROM cron_executions WHERE outcome IS NULL AND trigger = 'manual'
"""
BOOKS: Final = """
SELECT (SELECT json_agg(d ORDER BY d.key) FROM
         (SELECT key, digest, schema_text FROM deployments) d) AS deployments,
       (SELECT json_agg(j ORDER BY j.key) FROM
         (SELECT key, deployment_id, schedule, timeout_ms, removed_at FROM cron_jobs) j) AS jobs,
       (SELECT json_agg(e) FROM (SELECT id, runner_id, outcome, output, cancel_requested_at FROM cron_executions
         WHERE outcome IS NULL AND trigger = 'manual') e) AS running
"""


class Scene(NamedTuple):
    """`runner_id`: of the honest runner, which has `execution` in hand."""

    cluster: SecuredCluster
    runner_id: str
    execution: wire.Report

    @property
    def peer(self) -> str:
        return self.cluster.peers[0]

    def certificate(self, grant: str) -> Tls:
        return shown(self.cluster.pki.runner(grant), self.cluster.pki.trusted)

    async def grants(self, name: str, **how: Any) -> str:
        """The join token, where there is one."""
        async with self.cluster.client() as client:
            return (await client.identities.create_runner_grant(name, **how)).secret

    async def books(self) -> dict[str, Any]:
        """All that these attacks are after."""
        connection = await look(self.cluster.database_url)
        try:
            return dict(await connection.fetchrow(BOOKS) or {})
        finally:
            await connection.close()


async def _begun(cluster: SecuredCluster) -> Scene:
    """Once the run has been claimed. The report has the right claim, as only its runner knows it."""
    async with cluster.client() as client:
        await client.identities.create_runner_grant("rogue", modules=["invoices"], certificate_only=True)

        async def hosted() -> bool:
            with contextlib.suppress(NotFound):
                await client.jobs.trigger("vault.export")
                return True
            return False

        await wait_until(hosted, cluster.runners[0].tail)
    rows: list[Any] = []
    connection = await look(cluster.database_url)

    async def claimed() -> bool:
        rows[:] = await connection.fetch(RUNNING)
        return bool(rows)

    try:
        await wait_until(claimed, cluster.runners[0].tail)
    finally:
        await connection.close()
    (row,) = rows
    report = wire.Report(
        execution_id=row["id"], job_id=row["job_id"], claimed_at_us=row["claimed_at"], outcome=wire.OUTCOME_COMPLETED,
        started_at_us=row["claimed_at"], ended_at_us=row["claimed_at"], output="forged",
    )  # fmt: skip
    return Scene(cluster, row["runner_id"], report)


@pytest.fixture(scope="module")
def scene(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A controller, an honest runner with a run that lasts, and the grant `rogue`, which may host `invoices`."""
    with SecuredCluster(module_database_url, tmp_path_factory.mktemp("forged")) as cluster:
        cluster.start_controller()
        cluster.let_in()
        (cluster.folder / "vault.py").write_text(MODULE)
        cluster.start_runner(cluster.folder / "vault.py")
        yield asyncio.run(_begun(cluster))


@pytest.fixture
async def unchanged(scene: Scene) -> AsyncIterator[Scene]:
    """Whatever a test tried: modules, jobs and the run are as they were, and nobody fell over."""
    before = await scene.books()
    assert before["running"] is not None
    yield scene
    assert await scene.books() == before
    assert await owners(scene.cluster, "c9") == []
    for process in (scene.cluster.controllers[0], scene.cluster.runners[0]):
        log = process.log.read_text(errors="replace")
        assert process.alive(), process.tail()
        assert "Traceback" not in log, process.tail(60)
        assert "another stream" not in log, process.tail(60)


@contextlib.asynccontextmanager
async def stream(scene: Scene, tls: Tls) -> AsyncIterator[Stream]:
    async with channel_to(scene.peer, answer_bytes=1 << 20, tls=tls) as channel:
        opened = Stream(channel)
        yield opened
        opened.call.cancel()


def hello(runner_id: str, *modules: tuple[str, str, str]) -> wire.Hello:
    """`modules`: the name, the digest, and the schedule of `beat`."""
    said = wire.Hello(runner_id=runner_id, hostname="elsewhere", pid=1, version="9")
    for name, digest, schedule in modules:
        described = schema_pb2.Module(name=name, verbs=[schema_pb2.Verb(name="beat", schedule=schedule)])
        said.modules.add(digest=digest, schema=described)
    return said


async def test_a_runner_ends_nothing_that_was_not_dispatched_to_it(unchanged: Scene) -> None:
    """By all that there is to know of another's run; and runs that never were."""
    never = wire.Report()
    never.CopyFrom(unchanged.execution)
    never.execution_id += 1 << 40
    async with stream(unchanged, unchanged.certificate("rogue")) as rogue:
        await rogue.say(hello=hello("rogue.1"))
        heard = await rogue.hear()
        assert heard is not None
        assert heard.WhichOneof("message") == "welcome"
        await rogue.say(reports=wire.Reports(reports=[unchanged.execution, never]))
        told: set[int] = set()
        while not {unchanged.execution.execution_id, never.execution_id} <= told:
            heard = await asyncio.wait_for(rogue.hear(), CALL_S)
            assert heard is not None
            told |= set(heard.reports_ack.execution_ids)  # so that it stops saying so; neither is in the books
    refused = unchanged.cluster.http(unchanged.cluster.controllers[0], "/metrics")[1]
    for what in ("report_foreign", "report_decided"):
        assert f'cronring_refused_total{{what="{what}"}} 1.0' in refused, refused


async def test_nobody_takes_the_place_of_another_grants_runner(unchanged: Scene) -> None:
    assert await connects(unchanged.peer, unchanged.certificate("rogue"), unchanged.runner_id) is Code.PERMISSION_DENIED
    controller = shown(unchanged.cluster.pki.controller("c1"), unchanged.cluster.pki.trusted)
    assert await connects(unchanged.peer, controller, unchanged.runner_id) is Code.PERMISSION_DENIED


async def test_no_module_is_replaced_by_who_may_not(unchanged: Scene) -> None:
    """A version of others' module; one's own module without the right; a known digest with another schema."""
    connection = await look(unchanged.cluster.database_url)
    known = await connection.fetchval("SELECT digest FROM deployments")
    await connection.close()
    tried = {
        (
            "rogue",
            ("vault", "1" * 64, "every 1s"),
        ): "is for modules invoices of namespace 'default', and not for 'vault'",
        ("rogue", ("vault", known, "every 1s")): "is for modules invoices of namespace 'default', and not for 'vault'",
        ("rogue", ("invoices", "1" * 64, "every 1s")): "the runner's grant may not activate it",
        ("tests", ("vault", known, "every 7s")): "another schema",
    }
    for (grant, module), why in tried.items():
        async with stream(unchanged, unchanged.certificate(grant)) as rogue:
            await rogue.say(hello=hello(f"{grant}.rogue", module))
            heard = await asyncio.wait_for(rogue.hear(), CALL_S)
            assert heard is not None
            (answer,) = heard.welcome.modules
            assert (answer.deployment, answer.active) == ("", False)
            assert why in answer.problem


async def enrolls(scene: Scene, token: str, csr: bytes) -> wire.EnrollResponse:
    tls = Tls(scene.cluster.pki.trusted, None, NAME)
    async with channel_to(scene.cluster.controllers[0].grpc, answer_bytes=1 << 20, tls=tls) as channel:
        request = wire.EnrollRequest(join_token=token, csr=csr)
        return await runner_pb2_grpc.EnrollmentStub(channel).Enroll(request, timeout=CALL_S)


async def renews(scene: Scene, tls: Tls, csr: bytes) -> wire.EnrollResponse:
    async with channel_to(scene.peer, answer_bytes=1 << 20, tls=tls) as channel:
        return await runner_pb2_grpc.RenewalsStub(channel).Renew(wire.RenewRequest(csr=csr), timeout=CALL_S)


def _is_a_runners(pem: bytes, uri: str, key: PrivateKey) -> None:
    leaf = certificates_of(pem)[0]
    extensions = leaf.extensions
    assert name_in(leaf).uri == uri
    assert leaf.public_key() == key.public_key()
    assert extensions.get_extension_for_class(x509.SubjectAlternativeName).value.get_values_for_type(x509.DNSName) == []
    assert not extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert not extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    assert list(extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [ExtendedKeyUsageOID.CLIENT_AUTH]


async def test_who_asks_for_more_than_their_own_name_gets_their_own(unchanged: Scene) -> None:
    """A CA, a controller's name, the right to serve: what signs takes the key of a request, and nothing else."""
    token, key = await unchanged.grants("greedy"), new_key()
    greedy = greedy_request(key, controller_name(CLUSTER, "c1"))
    first = await enrolls(unchanged, token, greedy)
    uri = f"spiffe://{CLUSTER}/runner/default/greedy"
    _is_a_runners(first.certificate, uri, key)
    tls = held(Pair(first.certificate, key_pem(key)), unchanged.cluster.pki.trusted)
    second = await renews(unchanged, tls, greedy)
    _is_a_runners(second.certificate, uri, key)
    assert await gossips(unchanged.peer, tls, "c1-000000") is Code.PERMISSION_DENIED


async def test_what_was_said_and_answered_while_enrolling_is_of_no_use_to_others(unchanged: Scene) -> None:
    token, key = await unchanged.grants("once", uses=1), new_key()
    request = request_for(key)
    answer = await enrolls(unchanged, token, request)
    for csr in (request, request_for(new_key())):  # said again, as it was, and with a key of one's own
        with pytest.raises(grpc.aio.AioRpcError, match="was used as often as it may be") as again:
            await enrolls(unchanged, token, csr)
        assert again.value.code() is Code.UNAUTHENTICATED
    without = Tls(unchanged.cluster.pki.trusted, Pair(answer.certificate, key_pem(new_key())), NAME)
    assert await connects(unchanged.peer, without, "once.1") is Code.UNAVAILABLE, "the key was never sent"
    right = held(Pair(answer.certificate, key_pem(key)), unchanged.cluster.pki.trusted)
    assert await connects(unchanged.peer, right, "once.1") is Code.OK


async def test_a_certificate_that_was_stolen_is_nothing_once_its_grant_is_revoked(unchanged: Scene) -> None:
    await unchanged.grants("stolen", certificate_only=True)
    stolen = unchanged.certificate("stolen")
    assert await connects(unchanged.peer, stolen, "stolen.1") is Code.OK
    async with unchanged.cluster.client() as client:
        await client.identities.revoke_runner_grant("stolen")
    for grant in ("there is none", "a new one has the name"):
        assert await connects(unchanged.peer, stolen, "stolen.1") is Code.UNAUTHENTICATED, grant
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await renews(unchanged, stolen, request_for(new_key()))
        assert refused.value.code() is Code.UNAUTHENTICATED, grant
        if grant == "there is none":
            await unchanged.grants("stolen", certificate_only=True)


@contextlib.asynccontextmanager
async def fake_controller(folder: Path) -> AsyncIterator[tuple[str, list[str]]]:
    """Its address, and the methods that it is asked for. It shows the certificate of that folder."""
    server, asked = grpc.aio.server(), list[str]()

    class Notes(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in its stubs only
        def service(self, handler_call_details: Any) -> None:
            asked.append(handler_call_details.method)

    server.add_generic_rpc_handlers((Notes(),))
    port = listen(server, "127.0.0.1:0", CertificateFolder(folder))
    await server.start()
    try:
        yield f"127.0.0.1:{port}", asked
    finally:
        await server.stop(None)


async def test_who_has_a_runners_certificate_can_not_serve_as_a_controller(unchanged: Scene) -> None:
    """Who connects looks for a controller's name, wherever an address leads to."""
    cluster, pki = unchanged.cluster, unchanged.cluster.pki
    async with fake_controller(pki.runner("rogue")) as (fake, asked):
        assert await connects(fake, unchanged.certificate("tests"), "tests.1") is Code.UNAVAILABLE
        assert await gossips(fake, shown(pki.controller("c1"), pki.trusted), "c1-000000") is Code.UNAVAILABLE
        done = await asyncio.to_thread(cluster.ask, "jobs", "list", more=("--controllers", fake))
        assert done.returncode != 0
        assert "cert" in done.stderr, done
        assert asked == []
    async with fake_controller(pki.controller("c9")) as (fake, asked):  # that makes the test one
        assert await gossips(fake, shown(pki.controller("c1"), pki.trusted), "c1-000000") is Code.UNIMPLEMENTED
        assert len(asked) == 1


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
async def test_no_port_speaks_an_old_tls(unchanged: Scene, version: ssl.TLSVersion) -> None:
    controller = unchanged.cluster.controllers[0]
    for address in (controller.grpc, unchanged.peer, controller.http):
        with pytest.raises((ssl.SSLError, ConnectionResetError)):
            await _handshake(unchanged, address, version)
        await _handshake(unchanged, address, ssl.TLSVersion.TLSv1_2)


async def _handshake(scene: Scene, address: str, most: ssl.TLSVersion) -> None:
    """By whoever has a certificate, and settles for anything."""
    folder = scene.cluster.pki.runner("tests")
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, most
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    context.set_alpn_protocols(["h2"])
    host, _, port = address.rpartition(":")
    _, writer = await asyncio.open_connection(host, int(port), ssl=context)
    writer.transport.abort()


async def test_whoever_says_that_they_are_another_is_booked_as_themselves(unchanged: Scene) -> None:
    async with unchanged.cluster.client() as client:
        made = await client.identities.create_token("ops", [RoleIn("operator", "default")])
    async with unchanged.cluster.client(made.secret) as client:
        for said in ("token:tests", "user:corp/root", "runner:x"):
            await client.jobs.pause("vault.beat", by=said)
            await client.jobs.resume("vault.beat", by=said)
            actions = await client.jobs.actions("vault.beat", limit=2)
            assert [each.actor for each in actions] == ["token:ops"] * 2
