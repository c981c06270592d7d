"""A runner renews what it enrolled for: `keep` against a controller's own port, door and service, over mTLS."""

import asyncio
import contextlib
import datetime as dt
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, cast

import pytest
from cryptography import x509

from cronring.controller.api.calls import Calls
from cronring.controller.api.certified import Certified
from cronring.controller.api.judging import Known
from cronring.controller.api.policy import Audience
from cronring.controller.api.server import GrpcServer
from cronring.controller.runners.enrolling import LIFETIME, RenewalsService, Signing
from cronring.controller.runtime.clock import SystemClock
from cronring.protos.runner.v1 import runner_pb2, runner_pb2_grpc
from cronring.runner import trust as trusts
from cronring.runner.trust import RunnerTrust, keep
from cronring.schema.identity import Principal
from cronring.schema.spiffe import SpiffeName, controller_name, runner_name
from cronring.trust.certificates import Authority, certificates_of, issue, new_authority, new_key, request_for
from cronring.trust.channels import Presented, channel_to
from cronring.trust.holding import Certificates, CertificateSet
from tests.support.callers import counting, unlimited
from tests.support.cluster import free_port
from tests.support.grants import Grants
from tests.support.waiting import wait_until

EAST: Final = runner_name("cronring", "billing", "east")
AGAIN_S: Final = 0.05
# Ours begin 5 minutes before. So two thirds of its time are over, and it still lasts for as long as a test may take.
NEARLY_OVER: Final = dt.timedelta(minutes=2)


class Log:
    """What a runner says."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def info(self, event: str, **values: str) -> None:
        self.lines.append(f"{event} {values}")

    warning = info

    def count(self, *words: str) -> int:
        return sum(all(word in line for word in words) for line in self.lines)


class Controller:
    """`signs`: whether it has the CA's key. `shown`: the certificates of calls, in their order."""

    def __init__(self) -> None:
        self.ca = new_authority("cronring")
        self.grants = Grants()
        self.signs = True
        self.shown: list[x509.Certificate] = []
        self.heard: list[str] = []
        self.address = ""
        self._own = self._certificates(controller_name("cronring", "one"), dt.timedelta(hours=1))
        self.told = Certificates(self._own.current)  # the CAs that it tells runners of

    def exception(self, event: str, error: BaseException) -> None:
        self.heard.append(f"{event}: {error!r}")

    def _certificates(self, name: SpiffeName, lifetime: dt.timedelta) -> Certificates:
        pair = issue(Authority.read(*self.ca), name, lifetime)
        return Certificates(CertificateSet(self.ca.certificate, pair, certificates_of(pair.certificate)[0]))

    def runner(self, lifetime: dt.timedelta = NEARLY_OVER) -> RunnerTrust:
        held = self._certificates(EAST, lifetime)
        return RunnerTrust(Presented(held, "controller.cronring"), EAST.name, (self.address,), held)

    def authority(self) -> Authority | None:
        return Authority.read(*self.ca) if self.signs else None

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        certified = Certified(self._own, "cronring", cast("Any", self.grants), SystemClock().wall_us)

        async def noted(audience: Audience, context: Any) -> Principal:
            self.shown.append(certificates_of(context.auth_context()["x509_pem_cert"][0])[0])
            return await certified.judged(audience, context)

        judge = Known([], noted, unlimited())
        server = GrpcServer(Calls(self, counting([]), lambda: None), lambda: True, counting([]), judge)
        self.address = f"127.0.0.1:{server.bind('--peer', '127.0.0.1:0', self._own, mutual=True)}"
        service = RenewalsService(Signing(self.told, self.authority, "cronring", tuple))
        adds: Any = runner_pb2_grpc.add_RenewalsServicer_to_server
        server.add([("cronring.runner.v1.Renewals", lambda target: adds(service, target))], reflects=False)
        await server.start()
        try:
            yield
        finally:
            await server.stop(0)


@pytest.fixture
async def controller() -> AsyncIterator[Controller]:
    served = Controller()
    async with served.serving():
        yield served
    assert served.heard == []


@pytest.fixture(autouse=True)
def soon_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trusts, "RENEW_AGAIN_S", AGAIN_S)


class Keeping:
    """A runner that keeps its trust. `moved`: the serial numbers of what was held when links were told to move."""

    def __init__(self, trust: RunnerTrust, peers: Callable[[], tuple[str, ...]]) -> None:
        assert trust.certificates is not None
        self.held = trust.certificates
        self.trust = trust
        self.log = Log()
        self.moved: list[int] = []
        self._peers = peers

    async def _move(self) -> None:
        self.moved.append(self.held.current.leaf.serial_number)

    @contextlib.asynccontextmanager
    async def going_on(self) -> AsyncIterator["Keeping"]:
        task = asyncio.create_task(keep(self.trust, self._peers, self._move, self.log))
        try:
            yield self
            assert not task.done(), task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_one_whose_time_is_nearly_over_is_renewed_and_shown_from_then_on(controller: Controller) -> None:
    trust = controller.runner()
    async with Keeping(trust, lambda: (controller.address,)).going_on() as runner:
        first = runner.held.current
        await wait_until(lambda: bool(runner.moved), lambda: str(runner.log.lines))
        renewed = runner.held.current
        assert runner.moved == [renewed.leaf.serial_number] != [first.leaf.serial_number]
        assert (renewed.name, renewed.pair.key == first.pair.key) == (EAST, False)
        assert renewed.expires - first.expires > LIFETIME / 2
        await called(controller, trust)
        assert [each.serial_number for each in controller.shown] == [first.leaf.serial_number, *runner.moved]
        assert runner.log.count("certificates_replaced", renewed.expires.isoformat()) == len(runner.log.lines) == 1


async def called(controller: Controller, trust: RunnerTrust) -> None:
    """Over a new channel."""
    async with channel_to(controller.address, answer_bytes=100_000, tls=trust.tls()) as channel:
        request = runner_pb2.RenewRequest(csr=request_for(new_key()))
        await runner_pb2_grpc.RenewalsStub(channel).Renew(request, timeout=60)


async def test_one_that_lasts_is_left_alone(controller: Controller) -> None:
    async with Keeping(controller.runner(LIFETIME), lambda: (controller.address,)).going_on() as runner:
        async with Keeping(controller.runner(), lambda: (controller.address,)).going_on() as other:
            await wait_until(lambda: bool(other.moved), lambda: str(other.log.lines))
        assert (runner.moved, runner.log.lines, len(controller.shown)) == ([], [], 1)


async def test_while_postgresql_is_away_it_keeps_the_old_one_and_tries_again(controller: Controller) -> None:
    controller.grants.away = True
    async with Keeping(controller.runner(), lambda: (controller.address,)).going_on() as runner:
        first = runner.held.current
        await wait_until(lambda: runner.log.count("certificate_not_renewed", "UNAVAILABLE", controller.address) > 1,
                         lambda: str(runner.log.lines))  # fmt: skip
        assert (runner.held.current, runner.moved) == (first, [])
        controller.grants.away = False
        await wait_until(lambda: bool(runner.moved), lambda: str(runner.log.lines))
        assert runner.held.current is not first


async def test_where_nobody_signs_it_is_told_what_signs(controller: Controller) -> None:
    controller.signs = False
    async with Keeping(controller.runner(), lambda: (controller.address,)).going_on() as runner:
        first = runner.held.current
        await wait_until(lambda: runner.log.count("not_renewed", "FAILED_PRECONDITION", "--ca-key FILE") > 1,
                         lambda: str(runner.log.lines))  # fmt: skip
        assert (runner.held.current, runner.moved) == (first, [])
        controller.signs = True
        await wait_until(lambda: bool(runner.moved), lambda: str(runner.log.lines))


async def test_another_controller_is_asked_where_one_is_gone(controller: Controller) -> None:
    gone = f"127.0.0.1:{free_port()}"
    async with Keeping(controller.runner(), lambda: (gone, controller.address)).going_on() as runner:
        await wait_until(lambda: bool(runner.moved), lambda: str(runner.log.lines))
        assert runner.log.count("certificate_not_renewed", gone, "UNAVAILABLE") == 1


async def test_a_runner_whose_grant_is_gone_gets_none(controller: Controller) -> None:
    controller.grants.found = None
    async with Keeping(controller.runner(), lambda: (controller.address,)).going_on() as runner:
        await wait_until(lambda: runner.log.count("UNAUTHENTICATED", "there is no runner grant 'east'") > 0,
                         lambda: str(runner.log.lines))  # fmt: skip
        assert runner.moved == []


async def test_what_has_ended_can_renew_nothing_and_says_so(controller: Controller) -> None:
    ended = controller.runner(-dt.timedelta(minutes=1))
    async with Keeping(ended, lambda: (controller.address,)).going_on() as runner:
        await wait_until(lambda: runner.log.count("certificate_not_renewed", "it has expired", "join token") > 0,
                         lambda: str(runner.log.lines))  # fmt: skip
        assert (runner.moved, controller.shown) == ([], [])


async def test_an_answer_without_a_ca_is_not_taken(controller: Controller) -> None:
    right = controller.told.current
    controller.told.replace(right._replace(authorities=b"none"))
    async with Keeping(controller.runner(), lambda: (controller.address,)).going_on() as runner:
        await wait_until(lambda: runner.log.count("certificate_not_renewed", "holds no certificate") > 1,
                         lambda: str(runner.log.lines))  # fmt: skip
        assert runner.moved == []
        controller.told.replace(right)
        await wait_until(lambda: bool(runner.moved), lambda: str(runner.log.lines))
