"""Whoever comes without TLS, or trusts another CA, is told so: real gRPC servers, and the client's own words."""

import datetime as dt
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final, NamedTuple

import grpc
import pytest

from cronring.client import AsyncClient, ClientError
from cronring.schema.spiffe import SpiffeName, controller_name
from cronring.trust.certificates import Authority, Pair, certificates_of, issue, new_authority
from cronring.trust.channels import Tls, listen
from cronring.trust.handshakes import why_no_tls
from cronring.trust.holding import Certificates, CertificateSet
from tests.support.cluster import free_port

ONE: Final[SpiffeName] = controller_name("cronring", "one")
HOUR: Final = dt.timedelta(hours=1)


class Servers(NamedTuple):
    """Addresses. `ended`: one whose certificate has expired."""

    ca: Pair
    tls: str
    plain: str
    ended: str
    peer: str


def certificates(ca: Pair, lifetime: dt.timedelta) -> Certificates:
    pair = issue(Authority.read(*ca), ONE, lifetime, ("127.0.0.1",))
    return Certificates(CertificateSet(ca.certificate, pair, certificates_of(pair.certificate)[0]))


@pytest.fixture
async def servers() -> AsyncIterator[Servers]:
    ca, started, addresses = new_authority("cronring"), [], []
    right, ended = certificates(ca, HOUR), certificates(ca, -dt.timedelta(minutes=1))
    for own, mutual in ((right, False), (None, False), (ended, False), (right, True)):
        server = grpc.aio.server()
        addresses.append(f"127.0.0.1:{listen(server, '127.0.0.1:0', own, mutual=mutual)}")
        await server.start()
        started.append(server)
    yield Servers(ca, *addresses)
    for server in started:
        await server.stop(None)


async def test_what_is_wrong_between_two_ends_is_told(servers: Servers) -> None:
    ca, stranger = servers.ca.certificate, new_authority("cronring").certificate
    right = Tls(ca, None, "controller.cronring")
    assert await why_no_tls(servers.tls, right) == ""
    assert "it speaks TLS, and was asked in plaintext" in await why_no_tls(servers.tls, None)
    assert "not of the CA that was given" in await why_no_tls(servers.tls, Tls(stranger, None, ""))
    assert "not of any CA of this system" in await why_no_tls(servers.tls, Tls(None, None, ""))
    assert "is not for controller.east" in await why_no_tls(servers.tls, Tls(ca, None, "controller.east"))
    assert "it does not speak TLS" in await why_no_tls(servers.plain, right)
    assert "has expired" in await why_no_tls(servers.ended, right)
    assert "as --peer ports do; give a --grpc address" in await why_no_tls(servers.peer, right)


async def test_nothing_is_told_of_what_is_no_matter_of_tls(servers: Servers) -> None:
    shown = issue(Authority.read(*servers.ca), ONE, HOUR)
    assert await why_no_tls(servers.peer, Tls(servers.ca.certificate, shown, "controller.cronring")) == ""
    assert await why_no_tls(servers.plain, None) == ""
    assert await why_no_tls(f"127.0.0.1:{free_port()}", Tls(servers.ca.certificate, None, "")) == ""


async def test_a_client_says_so(servers: Servers, tmp_path: Path) -> None:
    ca = tmp_path / "ca.crt"
    ca.write_bytes(new_authority("cronring").certificate)
    with pytest.raises(ClientError, match=r"not of the CA that was given .* by --ca FILE"):
        await listed(AsyncClient([servers.tls], ca=ca))
    with pytest.raises(ClientError, match=r"asked in plaintext \(--insecure\); give --ca FILE"):
        await listed(AsyncClient([servers.tls], insecure=True))
    with pytest.raises(ClientError, match="does not speak TLS; --insecure asks without"):
        await listed(AsyncClient([servers.plain], ca=ca))


async def listed(client: AsyncClient) -> None:
    async with client:
        await client.jobs.list()
