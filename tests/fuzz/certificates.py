"""Targets: certificates, requests for them, and the files that hold them, as strangers and other PKIs write them."""

import asyncio
import base64
import contextlib
import datetime as dt
import tempfile
from pathlib import Path
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtensionOID

from cronring.controller.api.certified import Certified
from cronring.controller.api.policy import Audience
from cronring.controller.errors import Forbidden, Unauthenticated
from cronring.controller.runtime.clock import SystemClock
from cronring.schema.spiffe import SpiffeError, controller_name, parse_uri, runner_name
from cronring.trust.certificates import (
    Authority,
    CertificateError,
    certificates_of,
    hosts_in,
    issue,
    key_of_request,
    name_in,
    new_authority,
    new_key,
)
from cronring.trust.holding import CA_FILE, CERTIFICATE_FILE, KEY_FILE, CertificateFolder, Certificates, CertificateSet
from tests.fuzz.bounds import Misbehaved, as_text
from tests.support.grants import Grants

_DAY: Final = dt.timedelta(days=1)
_MESSAGE_MAX: Final = 3_000
_CA: Final = new_authority("cronring")
_AUTHORITY: Final = Authority.read(*_CA)
_PAIR: Final = issue(_AUTHORITY, controller_name("cronring", "one"), _DAY)
_OWN: Final = CertificateSet(_CA.certificate, _PAIR, certificates_of(_PAIR.certificate)[0])
_GRANTS: Any = Grants()
_CERTIFIED: Final = Certified(Certificates(_OWN), "cronring", _GRANTS, SystemClock().wall_us)
_KEY: Final = new_key()
_SIGNING: Any = serialization.load_pem_private_key(_CA.key, None)
_FILES: Final = ((CA_FILE, _CA.certificate), (CERTIFICATE_FILE, _PAIR.certificate), (KEY_FILE, _PAIR.key))


class _Shown:
    """A connection with this certificate, which TLS let pass."""

    def __init__(self, pem: bytes) -> None:
        self._pem = pem

    def auth_context(self) -> dict[str, list[bytes]]:
        return {"x509_pem_cert": [self._pem]}


def _armoured(label: str, der: bytes) -> bytes:
    return f"-----BEGIN {label}-----\n{base64.encodebytes(der).decode()}-----END {label}-----\n".encode()


def _words(error: Exception) -> None:
    if not 0 < len(str(error)) <= _MESSAGE_MAX:
        raise Misbehaved(f"a refusal of {len(str(error))} characters") from error


def _judged(pem: bytes, audience: Audience) -> str:
    """Who it is; "": it was refused."""
    context: Any = _Shown(pem)
    try:
        return asyncio.run(_CERTIFIED.judged(audience, context)).name
    except (Unauthenticated, Forbidden) as error:
        _words(error)
        return ""


def certificate(data: bytes) -> None:
    """As PEM, and as what is in it. Nobody has the CA's key here, so whatever comes is refused."""
    for pem in (data, _armoured("CERTIFICATE", data)):
        for audience in (Audience.CONTROLLERS, Audience.RUNNERS, Audience.GRANTED):
            if _judged(pem, audience) and pem.strip() != _PAIR.certificate.strip():
                raise Misbehaved(f"{pem!r} got in")
        with contextlib.suppress(CertificateError):
            for each in certificates_of(pem):
                hosts_in(each)


def san(data: bytes) -> None:
    """A SAN that the CA itself has signed, whatever is in it: it names one of the cluster, or nobody."""
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))
        .issuer_name(_AUTHORITY.certificate.subject)
        .public_key(_KEY.public_key())
        .serial_number(1)
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _DAY)
        .add_extension(x509.UnrecognizedExtension(ExtensionOID.SUBJECT_ALTERNATIVE_NAME, data), critical=False)
    )
    signed = builder.sign(_SIGNING, hashes.SHA256())
    hosts_in(signed)
    for audience in (Audience.CONTROLLERS, Audience.RUNNERS):
        name = _judged(signed.public_bytes(serialization.Encoding.PEM), audience)
        if name and (parse_uri(name) != name_in(signed) or parse_uri(name).cluster != "cronring"):
            raise Misbehaved(f"{data!r} is {name!r}")


def csr(data: bytes) -> None:
    """A key on P-256 that its sender holds, or CertificateError."""
    for pem in (data, _armoured("CERTIFICATE REQUEST", data)):
        try:
            key = key_of_request(pem)
        except CertificateError as error:
            _words(error)
            continue
        if not isinstance(key.curve, ec.SECP256R1):
            raise Misbehaved(f"{key.curve.name} was taken")
        _AUTHORITY.sign(runner_name("cronring", "default", "east"), key, _DAY)


def pem_files(data: bytes) -> None:
    """A folder of certificates of which one file is this: they fit each other, or are not taken."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for number, (name, right) in enumerate(_FILES):
            (folder / name).write_bytes(data[1:] if data[:1] and data[0] % 3 == number else right)
        try:
            held = CertificateFolder(folder)
            held.current.name  # noqa: B018 - it is asked at once
        except CertificateError as error:
            _words(error)
            return
        if held.current.leaf.public_key() != _OWN.leaf.public_key() and data[0] % 3 != 1:
            raise Misbehaved(f"{data!r} made another certificate of it")
        held.reload()


def spiffe(data: bytes) -> None:
    """A name that is written as it was read, or SpiffeError."""
    text = as_text(data)
    try:
        name = parse_uri(text)
    except SpiffeError as error:
        _words(error)
        return
    if name.uri != text or not text.isascii() or not text.isprintable():
        raise Misbehaved(f"{text!r} was read as {name!r}")
