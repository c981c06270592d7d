"""A set of public keys as issuers publish it (JWKS), and the secret that stands in a file: to keys that check."""

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from jwt import PyJWTError
from jwt.algorithms import ECAlgorithm, HMACAlgorithm, OKPAlgorithm, RSAAlgorithm

BYTES_MAX: Final = 256 * 1024
KEYS_MAX: Final = 64
SECRET_BYTES_MIN: Final = 32
SECRET_BYTES_MAX: Final = 4_096
RSA_BITS: Final = range(2_048, 8_192 + 1)  # smaller ones are broken, and larger ones take milliseconds
_OF_RSA: Final = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
_OF_CURVES: Final[Mapping[str, str]] = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}

PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey | ed448.Ed448PublicKey


class Unusable(Exception):
    """What should hold keys holds none. The message says what it holds."""


class CheckingKey(NamedTuple):
    """A key, its name, and the algorithms that it may be used with: never one of another kind of key."""

    kid: str | None
    algorithms: frozenset[str]
    key: PublicKey | bytes


def read_secret(raw: bytes) -> tuple[CheckingKey, ...]:
    """One key of HS256. Raises Unusable for what could be guessed, or is known to all."""
    secret = raw.strip()
    if len(secret) < SECRET_BYTES_MIN:
        raise Unusable(f"it has {len(secret)} bytes, which can be guessed; a secret must have {SECRET_BYTES_MIN}")
    if len(raw) > SECRET_BYTES_MAX:
        raise Unusable(f"it has {len(raw):,} bytes; a secret must have {SECRET_BYTES_MAX:,} at most")
    try:
        HMACAlgorithm(HMACAlgorithm.SHA256).prepare_key(secret)
    except PyJWTError:
        raise Unusable("it is a key of a pair, or a certificate; a secret must be random, and nobody's") from None
    return (CheckingKey(None, frozenset({"HS256"}), secret),)


def read_keys(raw: bytes, allowed: frozenset[str]) -> tuple[CheckingKey, ...]:
    """Those that can be used with an allowed algorithm; others are passed over. Raises Unusable if none is left."""
    if len(raw) > BYTES_MAX:
        raise Unusable(f"it has more than {BYTES_MAX:,} bytes")
    try:
        entries = json.loads(raw.decode())["keys"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise Unusable('it is no set of keys: that is JSON, as {"keys": [...]}') from None
    if not isinstance(entries, list):
        raise Unusable('it is no set of keys: that is JSON, as {"keys": [...]}')
    if len(entries) > KEYS_MAX:
        raise Unusable(f"it has {len(entries):,} keys, and {KEYS_MAX} are read at most")
    found = [key for entry in entries if isinstance(entry, dict) and (key := _checking(entry, allowed)) is not None]
    if not found:
        raise Unusable(f"none of its {len(entries)} keys can check a signature by {', '.join(sorted(allowed))}")
    return tuple(found)


def _checking(entry: dict[str, Any], allowed: frozenset[str]) -> CheckingKey | None:
    """None for a key that is for something else, of a kind that isn't known, or too weak; and for private ones."""
    if entry.get("use", "sig") != "sig" or "d" in entry:
        return None
    operations = entry.get("key_ops", ["verify"])
    kid = entry.get("kid")
    if not isinstance(operations, list) or "verify" not in operations or not isinstance(kid, str | None):
        return None
    try:
        key = _loaded(entry)
    except (PyJWTError, ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return None
    own = _algorithms(key) & allowed
    if "alg" in entry:
        own &= {entry["alg"]} if isinstance(entry["alg"], str) else set()
    return CheckingKey(kid, own, key) if own else None


def _loaded(entry: dict[str, Any]) -> PublicKey:
    match entry.get("kty"):
        case "RSA":
            found: object = RSAAlgorithm.from_jwk(entry)
        case "EC":
            found = ECAlgorithm.from_jwk(entry)
        case "OKP":
            found = OKPAlgorithm.from_jwk(entry)
        case _:
            raise ValueError("a kind of key that isn't known")
    if not isinstance(found, PublicKey):
        raise TypeError("no public key")
    return found


def _algorithms(key: PublicKey) -> frozenset[str]:
    match key:
        case rsa.RSAPublicKey():
            return _OF_RSA if key.key_size in RSA_BITS else frozenset()
        case ec.EllipticCurvePublicKey():
            return frozenset({_OF_CURVES[key.curve.name]} if key.curve.name in _OF_CURVES else ())
        case _:
            return frozenset({"EdDSA"})
