"""What a join token gives: a certificate of its own grant, that counts as younger than the grant of its name before."""

import base64
import datetime as dt
from typing import Any, Final, NoReturn, cast

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from cronring.controller.ports.tokens import GrantInForce
from cronring.controller.runners.enrolling import EnrollmentService, Signing
from cronring.protos.runner.v1 import runner_pb2
from cronring.schema.spiffe import controller_name
from cronring.schema.tokens import SecretKind, make_secret_text
from cronring.trust.certificates import (
    Authority,
    certificates_of,
    issue,
    issued_us,
    name_in,
    new_authority,
    new_key,
    request_for,
)
from cronring.trust.holding import Certificates, CertificateSet
from tests.support.callers import counting
from tests.support.grants import GRANT, Grants

SECOND_US: Final = 1_000_000


class AbortedError(Exception):
    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(f"{code.name}: {details}")


class Context:
    async def abort(self, code: grpc.StatusCode, details: str) -> NoReturn:
        raise AbortedError(code, details)


class House:
    """`refused`: what was counted."""

    def __init__(self) -> None:
        ca = new_authority("cronring")
        pair = issue(Authority.read(*ca), controller_name("cronring", "one"), dt.timedelta(hours=1))
        own = Certificates(CertificateSet(ca.certificate, pair, certificates_of(pair.certificate)[0]))
        self.grants, self.refused = Grants(), list[str]()
        self.signs = True
        signing = Signing(own, lambda: Authority.read(*ca) if self.signs else None, "cronring", lambda: ())
        self._service = EnrollmentService(signing, cast("Any", self.grants), counting(self.refused))

    async def enroll(self, token: str = "", csr: bytes = b"") -> runner_pb2.EnrollResponse:
        request = runner_pb2.EnrollRequest(
            join_token=token or make_secret_text(SecretKind.JOIN, b"j" * 32), csr=csr or request_for(new_key())
        )
        return await self._service.Enroll(request, cast("Any", Context()))


@pytest.fixture
def house() -> House:
    return House()


async def test_the_name_is_the_grants(house: House) -> None:
    answer = await house.enroll()
    assert name_in(certificates_of(answer.certificate)[0]).uri == "spiffe://cronring/runner/billing/east"


async def test_it_is_younger_than_the_last_of_its_name_though_certificates_have_whole_seconds(house: House) -> None:
    now_us = int(dt.datetime.now(dt.UTC).timestamp() * SECOND_US)
    for freed_us in (now_us, now_us + 3 * SECOND_US + 1):  # just now; and by a clock that is ahead
        house.grants.found = GrantInForce(GRANT, freed_us)
        leaf = certificates_of((await house.enroll()).certificate)[0]
        assert issued_us(leaf) >= freed_us
        assert leaf.not_valid_before_utc < dt.datetime.now(dt.UTC)


@pytest.mark.parametrize("found", [None, GrantInForce(GRANT._replace(grant_id=8), 1)])
async def test_a_grant_that_is_revoked_meanwhile_gives_none(house: House, found: GrantInForce | None) -> None:
    house.grants.found = found
    with pytest.raises(AbortedError, match="UNAUTHENTICATED: the runner grant 'east' has just been revoked"):
        await house.enroll()
    assert house.refused == ["unauthenticated"]


async def test_what_gives_none_says_why(house: House) -> None:
    with pytest.raises(AbortedError, match="UNAUTHENTICATED: this is no join token"):
        await house.enroll("crj_none")
    with pytest.raises(AbortedError, match="INVALID_ARGUMENT: csr: it is no certificate signing request"):
        await house.enroll(csr=b"none")
    house.signs = False
    with pytest.raises(AbortedError, match="FAILED_PRECONDITION: this controller signs no certificates"):
        await house.enroll()
    house.signs, house.grants.away = True, True
    with pytest.raises(AbortedError, match="UNAVAILABLE: PostgreSQL can't be asked"):
        await house.enroll()
    house.grants.away, house.grants.joins = False, None
    with pytest.raises(AbortedError, match="UNAUTHENTICATED: this join token is not known here"):
        await house.enroll()
    assert house.refused == ["unauthenticated"] * 2


async def test_a_request_of_a_version_that_there_is_not_is_refused_as_any_other(house: House) -> None:
    """cryptography has an error of its own for it, which is no ValueError."""
    der = x509.load_pem_x509_csr(request_for(new_key())).public_bytes(Encoding.DER)
    odd = der.replace(b"\x02\x01\x00", b"\x02\x01\x09", 1)
    csr = f"-----BEGIN CERTIFICATE REQUEST-----\n{base64.encodebytes(odd).decode()}-----END CERTIFICATE REQUEST-----\n"
    with pytest.raises(AbortedError, match="INVALID_ARGUMENT: csr: it is no certificate signing request"):
        await house.enroll(csr=csr.encode())
