"""X.509 certificates of a cluster: a CA, and what it signs. Keys are P-256, as TLS 1.3 has them everywhere.

Any other PKI will do as well, as long as names are those of cronring.schema.spiffe, and a controller's certificate has
the DNS name `controller.CLUSTER`. Source of the profile: SPIFFE X509-SVID (one URI SAN; no CA flag; digitalSignature).
"""

import datetime as dt
import ipaddress
import secrets
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes, CertificatePublicKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from cronring.schema.spiffe import PeerKind, SpiffeError, SpiffeName, check_cluster, parse_uri, server_name

CA_DAYS: Final = 3_650
RUNNER_HOURS: Final = 24
# Clocks differ. A certificate that begins now would be refused by whoever is behind.
BACKDATED: Final = dt.timedelta(minutes=5)
CSR_BYTES_MAX: Final = 16 * 1024

# What cryptography raises for bytes of strangers. Some of it is no ValueError, and comes when a part is looked at.
_UNREADABLE: Final = (
    ValueError, UnsupportedAlgorithm, x509.InvalidVersion, x509.DuplicateExtension, x509.UnsupportedGeneralNameType,
)  # fmt: skip

PrivateKey = ec.EllipticCurvePrivateKey


class CertificateError(Exception):
    """What was given is no certificate, key or request that can be used. The message says why."""


class Pair(NamedTuple):
    """PEM texts."""

    certificate: bytes
    key: bytes


class Authority:
    """A CA that signs. Raises CertificateError when the key is another one's."""

    def __init__(self, certificate: x509.Certificate, key: CertificateIssuerPrivateKeyTypes) -> None:
        if certificate.public_key() != key.public_key():
            raise CertificateError("the CA's key does not belong to its certificate")
        self.certificate = certificate
        self._key = key

    @classmethod
    def read(cls, certificates: bytes, key: bytes) -> "Authority":
        """Of a bundle, the certificate that the key belongs to. Raises CertificateError."""
        private = _issuing_key(key)
        for certificate in certificates_of(certificates):
            if _public_key(certificate) == private.public_key():
                return cls(certificate, private)
        raise CertificateError("the CA's key belongs to none of the CA's certificates")

    @property
    def pem(self) -> bytes:
        return _pem(self.certificate)

    def sign(
        self,
        name: SpiffeName,
        public_key: ec.EllipticCurvePublicKey,
        lifetime: dt.timedelta,
        hosts: Iterable[str] = (),
        after_us: int = 0,
    ) -> bytes:
        """A certificate for that name, as PEM. `hosts`: DNS names and IP addresses that clients dial a controller by.

        It never outlives its CA. `after_us`: since 1970, by another clock; it counts as issued no sooner.
        """
        now = _now()
        # Certificates have whole seconds, so one of this second would look older than what was a moment ago.
        issued = max(now, dt.datetime.fromtimestamp(-(-after_us // 1_000_000), dt.UTC))
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH]
        names: list[x509.GeneralName] = [x509.UniformResourceIdentifier(name.uri)]
        if name.kind is PeerKind.CONTROLLER:
            usages.insert(0, ExtendedKeyUsageOID.SERVER_AUTH)
            names += [x509.DNSName(server_name(name.cluster)), *map(_host, hosts)]
        builder = (
            x509.CertificateBuilder()
            .subject_name(_common_name(f"{name.kind} {name.name}"))
            .issuer_name(self.certificate.subject)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(issued - BACKDATED)
            .not_valid_after(min(now + lifetime, self.certificate.not_valid_after_utc))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(_authority_key(self.certificate), critical=False)
        )
        return _pem(builder.sign(self._key, _digest(self._key)))


def new_authority(cluster: str, days: int = CA_DAYS) -> Pair:
    """A CA of its own. Raises SpiffeError for a name that no cluster may have."""
    key, now = ec.generate_private_key(ec.SECP256R1()), _now()
    # While one CA replaces another, both are there: their names tell them apart, for people and for OpenSSL.
    subject = _common_name(f"cronring CA {now:%Y-%m-%d} {secrets.token_hex(2)} of {check_cluster(cluster)}")
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + dt.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return Pair(_pem(builder.sign(key, hashes.SHA256())), key_pem(key))


def issue(
    authority: Authority, name: SpiffeName, lifetime: dt.timedelta, hosts: Iterable[str] = (), after_us: int = 0
) -> Pair:
    """A key and its certificate."""
    key = new_key()
    return Pair(authority.sign(name, key.public_key(), lifetime, hosts, after_us), key_pem(key))


def issued_us(certificate: x509.Certificate) -> int:
    """When, since 1970, as far as a certificate tells: ours begin BACKDATED before.

    Another PKI backdates by something else. One that does so by less makes its certificates look younger than they are.
    One that does so by more makes them look older.
    """
    return int((certificate.not_valid_before_utc + BACKDATED).timestamp()) * 1_000_000


def new_key() -> PrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def key_pem(key: PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def request_for(key: PrivateKey) -> bytes:
    """A CSR, as PEM. It asks for no name: whoever signs decides that."""
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def key_of_request(csr: bytes) -> ec.EllipticCurvePublicKey:
    """Nothing but the key is taken from a CSR, and its sender must hold it. Raises CertificateError."""
    try:
        if len(csr) > CSR_BYTES_MAX:
            raise CertificateError(f"the request has more than {CSR_BYTES_MAX} bytes")
        request = x509.load_pem_x509_csr(csr)
        key = request.public_key()
        signed = request.is_signature_valid
    except _UNREADABLE as error:
        raise CertificateError("it is no certificate signing request in PEM") from error
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise CertificateError("its key must be an elliptic one on P-256 (secp256r1)")
    if not signed:
        raise CertificateError("it is not signed by its own key")
    return key


def certificates_of(pem: bytes) -> list[x509.Certificate]:
    """Raises CertificateError when there is none."""
    try:
        return x509.load_pem_x509_certificates(pem)
    except _UNREADABLE as error:
        raise CertificateError("it holds no certificate in PEM") from error


def check_pair(pair: Pair) -> x509.Certificate:
    """The leaf, which the key belongs to. Raises CertificateError."""
    leaf = certificates_of(pair.certificate)[0]
    if _public_key(leaf) != _issuing_key(pair.key).public_key():
        raise CertificateError("the key does not belong to the certificate")
    return leaf


def name_in(certificate: x509.Certificate) -> SpiffeName:
    """Raises CertificateError unless it has exactly one URI, and that is a name of ours."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, *_UNREADABLE) as error:
        raise CertificateError(
            "it has no SAN that can be read, which must name its holder by a spiffe:// URI"
        ) from error
    uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    if len(uris) != 1:
        raise CertificateError(f"its SAN must have one URI, and has {len(uris)}")
    try:
        return parse_uri(uris[0])
    except SpiffeError as error:
        raise CertificateError(str(error)) from error


def hosts_in(certificate: x509.Certificate) -> list[str]:
    """DNS names and IP addresses of the SAN."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, *_UNREADABLE):
        return []
    dns: list[str] = names.get_values_for_type(x509.DNSName)
    return [*dns, *(str(address) for address in names.get_values_for_type(x509.IPAddress))]


def signed_by(certificate: x509.Certificate, authorities: Sequence[x509.Certificate]) -> bool:
    """Whether one of these signed it itself. (Chains are TLS's; this asks what stays true while a stream is open.)"""
    for authority in authorities:
        try:
            certificate.verify_directly_issued_by(authority)
        except (*_UNREADABLE, TypeError, InvalidSignature):
            continue
        return True
    return False


def _public_key(certificate: x509.Certificate) -> CertificatePublicKeyTypes:
    try:
        return certificate.public_key()
    except _UNREADABLE as error:
        raise CertificateError("its key is of a kind that can't be read") from error


def _issuing_key(pem: bytes) -> CertificateIssuerPrivateKeyTypes:
    try:
        key = serialization.load_pem_private_key(pem, None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise CertificateError("it is no private key in PEM without a password") from error
    return key  # type: ignore[return-value]  # a Diffie-Hellman one equals no certificate's key


def _digest(key: CertificateIssuerPrivateKeyTypes) -> hashes.SHA256 | None:
    return None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _common_name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates, key_cert_sign=signs_certificates, crl_sign=signs_certificates,
        content_commitment=False, key_encipherment=False, data_encipherment=False, key_agreement=False,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _authority_key(certificate: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    try:
        known = certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        key = certificate.public_key()
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(key)  # type: ignore[arg-type]  # a CA's key signs
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(known)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)
