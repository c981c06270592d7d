"""Secrets that are given out: bearer tokens, join tokens of runners, cookies of sessions. How they look, what is kept.

`crt_`, 32 random bytes in URL-safe base64, `_`, and six hexadecimal digits of a checksum. So scanners for secrets find
them, and a mistyped one is told apart from a revoked one without asking PostgreSQL.
"""

import base64
import hashlib
import re
import zlib
from enum import StrEnum
from typing import Final

SECRET_BYTES: Final = 32
_BODY: Final = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_CHECK_LENGTH: Final = 6
_LENGTH: Final = len("crt_") + 43 + len("_") + _CHECK_LENGTH


class SecretKind(StrEnum):
    """What a secret begins with."""

    TOKEN = "crt_"  # noqa: S105  # how they begin
    JOIN = "crj_"
    SESSION = "crs_"  # the cookie of a browser


def make_secret_text(kind: SecretKind, random: bytes) -> str:
    """Of SECRET_BYTES that nobody can guess."""
    if len(random) != SECRET_BYTES:
        raise ValueError(f"a secret has {SECRET_BYTES} bytes")
    body = kind + base64.urlsafe_b64encode(random).decode().rstrip("=")
    return f"{body}_{_check(body)}"


def is_of_kind(kind: SecretKind, text: str) -> bool:
    """By how it begins; it may be mistyped all the same."""
    return text.startswith(kind)


def secret_fault(kind: SecretKind, text: str) -> str:
    """Why it can't be one, in words that don't repeat it; "" if it can."""
    if not is_of_kind(kind, text):
        return f"it does not begin with {kind}"
    if len(text) != _LENGTH:
        return f"it has {len(text)} characters, and not {_LENGTH}: some are missing, or stand beside it"
    body, check = text[: -_CHECK_LENGTH - 1], text[-_CHECK_LENGTH - 1 :]
    if not _BODY.fullmatch(body.removeprefix(kind)) or check != f"_{_check(body)}":
        return "its checksum is wrong: some of its characters were changed on the way"
    return ""


def secret_hash(kind: SecretKind, text: str) -> bytes:
    """What is kept of it, and looked up. Raises ValueError for what has a `secret_fault`."""
    if fault := secret_fault(kind, text):
        raise ValueError(fault)
    body = text.removeprefix(kind)[: -_CHECK_LENGTH - 1]
    return hash_of(base64.urlsafe_b64decode(body + "="))


def hash_of(random: bytes) -> bytes:
    """SHA-256. 32 random bytes are found by no trying, so it need not be slow."""
    return hashlib.sha256(random).digest()


def _check(body: str) -> str:
    return f"{zlib.crc32(body.encode()) & 0xFFFFFF:06x}"
