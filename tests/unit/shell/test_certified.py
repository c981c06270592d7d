"""What a certificate makes of whoever shows it. TLS has checked its chain; here is what stays to be asked."""

import base64
import datetime as dt
from collections.abc import Sequence
from typing import Any, Final, cast

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from cronring.controller.api import certified
from cronring.controller.api.certified import Certified
from cronring.controller.api.policy import Audience
from cronring.controller.errors import Forbidden, StoreUnavailable, Unauthenticated
from cronring.controller.ports.tokens import GrantInForce
from cronring.schema.identity import Kind, Principal
from cronring.schema.spiffe import SpiffeName, controller_name, runner_name
from cronring.trust.certificates import (
    BACKDATED,
    Authority,
    Pair,
    certificates_of,
    hosts_in,
    issue,
    issued_us,
    new_authority,
    new_key,
)
from cronring.trust.holding import Certificates, CertificateSet
from tests.support.grants import GRANT, Grants

HOUR: Final = dt.timedelta(hours=1)
SECOND_US: Final = 1_000_000
EAST: Final = runner_name("cronring", "billing", "east")
ONE: Final = controller_name("cronring", "one")
RUNNER_SIDE: Final = Audience.RUNNERS


class Shown:
    """A call's context. `pem` None: it came without a certificate."""

    def __init__(self, pem: bytes | None) -> None:
        self._pem = pem

    def auth_context(self) -> dict[str, Sequence[bytes]]:
        plain: dict[str, Sequence[bytes]] = {"transport_security_type": [b"ssl"]}
        return plain if self._pem is None else plain | {"x509_pem_cert": [self._pem]}


class House:
    """A controller of cluster `cronring`, which counts one CA until `trusts` says otherwise."""

    def __init__(self) -> None:
        self.ca = new_authority("cronring")
        self.pair = issue(Authority.read(*self.ca), ONE, HOUR)
        self.own = Certificates(self._held(self.ca.certificate))
        self.grants = Grants()
        self.now_us = int(dt.datetime.now(dt.UTC).timestamp()) * SECOND_US
        self.certified = Certified(self.own, "cronring", cast("Any", self.grants), lambda: self.now_us)

    def _held(self, authorities: bytes) -> CertificateSet:
        return CertificateSet(authorities, self.pair, certificates_of(self.pair.certificate)[0])

    def trusts(self, *authorities: Pair) -> None:
        self.own.replace(self._held(b"".join(each.certificate for each in authorities)))

    def pem(self, name: SpiffeName, ca: Pair | None = None, after_us: int = 0) -> bytes:
        return issue(Authority.read(*(ca or self.ca)), name, HOUR, after_us=after_us).certificate

    async def judged(self, pem: bytes | None, audience: Audience = RUNNER_SIDE) -> Principal:
        return await self.certified.judged(audience, cast("Any", Shown(pem)))


@pytest.fixture
def house() -> House:
    return House()


def signed(house: House, names: Sequence[str], ca: Pair | None = None) -> bytes:
    """A certificate with these URIs, by the house's CA; with a `ca` whose key belongs to it, by that."""
    pair, key, now = ca or house.ca, new_key(), dt.datetime.now(dt.UTC)
    authority = certificates_of(pair.certificate)[0]
    signing: Any = serialization.load_pem_private_key(pair.key, None)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))
        .issuer_name(authority.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - HOUR)
        .not_valid_after(now + HOUR)
    )
    if names:
        uris = [x509.UniformResourceIdentifier(name) for name in names]
        builder = builder.add_extension(x509.SubjectAlternativeName(uris), critical=False)
    return builder.sign(signing, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


async def test_a_runner_with_a_grant_is_who_its_certificate_says(house: House) -> None:
    pem = house.pem(EAST)
    leaf = certificates_of(pem)[0]
    ends_us = int(leaf.not_valid_after_utc.timestamp()) * SECOND_US
    assert await house.judged(pem) == Principal(Kind.RUNNER, EAST.uri, (), ends_us)
    assert house.grants.asked == ["east"]


async def test_a_controller_needs_no_grant(house: House) -> None:
    house.grants.away = True
    judged = await house.judged(house.pem(ONE), Audience.CONTROLLERS)
    assert (judged.kind, judged.name, house.grants.asked) == (Kind.CONTROLLER, ONE.uri, [])


async def test_without_a_certificate_nobody_comes_in(house: House) -> None:
    for audience in (Audience.RUNNERS, Audience.CONTROLLERS):
        with pytest.raises(Unauthenticated, match="show a certificate of the cluster"):
            await house.judged(None, audience)


async def test_it_ends_while_its_connection_goes_on(house: House) -> None:
    pem = house.pem(EAST)
    ends_us = (await house.judged(pem)).expires_us
    assert ends_us is not None
    house.now_us = ends_us - 1
    await house.judged(pem)
    house.now_us = ends_us
    with pytest.raises(Unauthenticated, match=f"the certificate of {EAST.uri} has expired"):
        await house.judged(pem)


async def test_one_ca_replaces_another(house: House) -> None:
    second = new_authority("cronring")
    old, new = house.pem(EAST), house.pem(EAST, second)
    with pytest.raises(Unauthenticated, match=r"the CA that signed .* does not count any more"):
        await house.judged(new)
    house.trusts(house.ca, second)
    assert (await house.judged(old)).name == (await house.judged(new)).name == EAST.uri
    house.trusts(second)
    assert (await house.judged(new)).name == EAST.uri
    with pytest.raises(Unauthenticated, match="does not count any more; a new certificate is needed"):
        await house.judged(old)


async def test_one_that_signed_itself_is_nobodys(house: House) -> None:
    stranger = new_authority("cronring")  # of the same name as the house's CA, with another key
    with pytest.raises(Unauthenticated, match="does not count any more"):
        await house.judged(signed(house, [EAST.uri], stranger))


async def test_other_clusters_are_other_clusters(house: House) -> None:
    with pytest.raises(Unauthenticated, match="is of another cluster than 'cronring'"):
        await house.judged(house.pem(runner_name("staging", "billing", "east")))
    assert house.grants.asked == []


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ([], "it has no SAN"),
        ([EAST.uri, ONE.uri], "its SAN must have one URI, and has 2"),
        ([EAST.uri, EAST.uri], "its SAN must have one URI, and has 2"),
        (["https://example.org"], "names neither a controller nor a runner"),
        (["spiffe://cronring/runner/billing/east/more"], "names neither a controller nor a runner"),
    ],
)
async def test_a_certificate_names_one_of_the_cluster(house: House, names: list[str], why: str) -> None:
    with pytest.raises(Unauthenticated, match=f"names nobody of the cluster: .*{why}"):
        await house.judged(signed(house, names))


async def test_what_is_no_certificate_names_nobody(house: House) -> None:
    with pytest.raises(Unauthenticated, match="names nobody of the cluster"):
        await house.judged(b"-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n")


async def test_runners_are_no_controllers_and_controllers_no_runners(house: House) -> None:
    with pytest.raises(Forbidden, match=f"this is for controllers, and {EAST.uri} is none"):
        await house.judged(house.pem(EAST), Audience.CONTROLLERS)
    with pytest.raises(Forbidden, match=f"this is for runners, and {ONE.uri} is none"):
        await house.judged(house.pem(ONE), Audience.RUNNERS)


@pytest.mark.parametrize("found", [None, GrantInForce(GRANT._replace(namespace="prod"), None)])
async def test_without_its_grant_a_runner_is_nobody(house: House, found: GrantInForce | None) -> None:
    pem = house.pem(EAST)
    await house.judged(pem)
    house.grants.found = found
    with pytest.raises(Unauthenticated, match="there is no runner grant 'east' in namespace 'billing': it was revoked"):
        await house.judged(pem)


async def test_while_postgresql_is_away_a_certificate_is_enough(house: House) -> None:
    """A runner that finds no contact for 8 s stops its runs, and PostgreSQL may be away for longer."""
    house.grants.away = True
    assert (await house.judged(house.pem(EAST))).name == EAST.uri


async def test_a_new_certificate_needs_a_grant_that_postgresql_confirms(house: House) -> None:
    house.grants.away = True
    with pytest.raises(StoreUnavailable):
        await house.judged(house.pem(EAST), Audience.GRANTED)


async def test_a_postgresql_that_hangs_is_away(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certified, "AWAY_S", 0.01)
    house.grants.hangs = True
    assert (await house.judged(house.pem(EAST))).name == EAST.uri


async def test_a_name_that_was_freed_is_not_for_those_who_had_it(house: House) -> None:
    old = house.pem(EAST)
    issued = issued_us(certificates_of(old)[0])
    house.grants.found = GrantInForce(GRANT, issued)
    await house.judged(old)
    house.grants.found = GrantInForce(GRANT, issued + 1)
    with pytest.raises(Unauthenticated, match=r"older than the grant: .*; a new certificate is needed"):
        await house.judged(old)
    assert (await house.judged(house.pem(EAST, after_us=issued + 1))).name == EAST.uri


async def test_one_that_is_backdated_by_more_counts_as_older(house: House) -> None:
    """Another PKI's: `signed` backdates by an hour."""
    pem = signed(house, [EAST.uri])
    began_us = int(certificates_of(pem)[0].not_valid_before_utc.timestamp()) * SECOND_US
    house.grants.found = GrantInForce(GRANT, began_us + int(BACKDATED.total_seconds()) * SECOND_US)
    await house.judged(pem)
    house.grants.found = GrantInForce(GRANT, house.now_us - HOUR // dt.timedelta(microseconds=2))
    with pytest.raises(Unauthenticated, match="older than the grant"):
        await house.judged(pem)


def _odd_san(house: House, extensions: Sequence[bytes]) -> bytes:
    """By the house's CA, as another PKI might: with these for SANs."""
    key, now = new_key(), dt.datetime.now(dt.UTC)
    signing: Any = serialization.load_pem_private_key(house.ca.key, None)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))
        .issuer_name(certificates_of(house.ca.certificate)[0].subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - HOUR)
        .not_valid_after(now + HOUR)
    )
    for raw in extensions:
        san = x509.UnrecognizedExtension(x509.SubjectAlternativeName.oid, raw)
        builder = builder.add_extension(san, critical=False)
    return builder.sign(signing, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@pytest.mark.parametrize("raw", [b"0\x02\xa3\x00", b"0\x04\xa5\x020\x00", b"0\x05", b"\xff"])
async def test_a_san_that_can_not_be_read_names_nobody(house: House, raw: bytes) -> None:
    """Names of kinds that cryptography has an error of its own for, and what is no SAN at all."""
    pem = _odd_san(house, [raw])
    with pytest.raises(Unauthenticated, match="names nobody of the cluster: it has no SAN that can be read"):
        await house.judged(pem)
    assert hosts_in(certificates_of(pem)[0]) == []


async def test_a_certificate_of_a_version_that_there_is_not_names_nobody(house: House) -> None:
    der = certificates_of(house.pem(EAST))[0].public_bytes(serialization.Encoding.DER)
    odd = base64.encodebytes(der.replace(b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x09", 1)).decode()
    with pytest.raises(Unauthenticated, match="it holds no certificate in PEM"):
        await house.judged(f"-----BEGIN CERTIFICATE-----\n{odd}-----END CERTIFICATE-----\n".encode())
