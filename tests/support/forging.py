"""Certificates as somebody makes them who has no CA of the cluster: the right names, by the wrong keys."""

import datetime as dt
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from cronring.schema.spiffe import SpiffeName, server_name
from cronring.trust.certificates import Authority, Pair, PrivateKey, issue, key_pem, new_key
from cronring.trust.channels import Tls
from tests.support.secured import CLUSTER, DAY


def shown(folder: Path, roots: bytes) -> Tls:
    """How one with these certificates connects to a controller that those CAs have signed for."""
    return held(Pair((folder / "tls.crt").read_bytes(), (folder / "tls.key").read_bytes()), roots)


def held(pair: Pair, roots: bytes) -> Tls:
    return Tls(roots, pair, server_name(CLUSTER))


def self_signed(name: SpiffeName) -> Pair:
    """By its own key."""
    key, now = new_key(), dt.datetime.now(dt.UTC)
    nobody = x509.Name([])
    names: list[x509.GeneralName] = [x509.UniformResourceIdentifier(name.uri), x509.DNSName(server_name(name.cluster))]
    builder = (
        x509.CertificateBuilder()
        .subject_name(nobody)
        .issuer_name(nobody)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - DAY)
        .not_valid_after(now + DAY)
        .add_extension(x509.SubjectAlternativeName(names), critical=True)
    )
    return Pair(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM), key_pem(key))


def signed_by_leaf(folder: Path, name: SpiffeName) -> Pair:
    """By the certificate of that folder, which is no CA; it stands behind the forged one, as a chain does."""
    leaf, key = (folder / "tls.crt").read_bytes(), (folder / "tls.key").read_bytes()
    forged = issue(Authority.read(leaf, key), name, DAY)
    return Pair(forged.certificate + leaf, forged.key)


def greedy_request(key: PrivateKey, name: SpiffeName) -> bytes:
    """A CSR, as PEM, that asks for more than its sender may have: another's name, a CA, and servers' usages."""
    usage: dict[str, Any] = dict.fromkeys(
        ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "crl_sign"), False
    )
    builder = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, server_name(name.cluster))]))
        .add_extension(
            x509.SubjectAlternativeName([
                x509.UniformResourceIdentifier(name.uri), x509.DNSName(server_name(name.cluster)),
            ]),
            critical=True,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=3), critical=True)
        .add_extension(
            x509.KeyUsage(
                digital_signature=True, key_cert_sign=True, encipher_only=False, decipher_only=False, **usage
            ),
            critical=True,
        )
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    )  # fmt: skip
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
