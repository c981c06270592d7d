"""Envelopes: how a secret lies in the database. Its own data key encrypts it, and another key wraps that one.

An envelope is one line of text: `cronring1$KEY$WRAPPED$CONTENT`. KEY is the id of the key that wraps. WRAPPED is the
data key and CONTENT the secret, both encrypted and in base64. Encryption is AES-256-GCM. The context of a secret, such
as `cron_webhooks/pager`, is authenticated with it: in another row the same text does not open.
"""

import base64
import os
import re
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

FORMAT: Final = "cronring1"
PLAIN: Final = "plain"  # in place of a key's id: the content is not encrypted
KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
KEY_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9:/_.@+=,-]{0,199}", re.ASCII)


class EnvelopeError(ValueError):
    """This is no envelope, or does not open. The message says why, and quotes nothing of it."""


class Purpose(Enum):
    """What is encrypted: a wrapped key can't pass for a secret."""

    KEY = b"key"
    SECRET = b"secret"


@dataclass(frozen=True, slots=True)
class Envelope:
    """`wrapped`: the data key, as the key of `key_id` wraps it; empty for PLAIN."""

    key_id: str
    wrapped: bytes = field(repr=False)
    content: bytes = field(repr=False)

    def text(self) -> str:
        return "$".join((FORMAT, self.key_id, _base64(self.wrapped), _base64(self.content)))

    @classmethod
    def parse(cls, text: str) -> "Envelope":
        """What `text` gave. Raises EnvelopeError."""
        name, *fields = text.split("$")
        if name != FORMAT or len(fields) != 3 or not KEY_ID.fullmatch(fields[0]):
            raise EnvelopeError("it is no envelope of a form that this release knows")
        try:
            wrapped, content = (base64.b64decode(each, validate=True) for each in fields[1:])
        except ValueError:
            raise EnvelopeError("it is no envelope: its fields are no base64") from None
        return cls(fields[0], wrapped, content)


def new_key() -> bytes:
    """At random."""
    return os.urandom(KEY_BYTES)


def encrypt(key: bytes, plain: bytes, purpose: Purpose, context: str) -> bytes:
    """The nonce, and what it comes to."""
    nonce = os.urandom(NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, plain, _bound_to(purpose, context))


def decrypt(key: bytes, encrypted: bytes, purpose: Purpose, context: str) -> bytes:
    """What `encrypt` was given. Raises EnvelopeError for another key or context, and for what was changed."""
    nonce, rest = encrypted[:NONCE_BYTES], encrypted[NONCE_BYTES:]
    try:
        return AESGCM(key).decrypt(nonce, rest, _bound_to(purpose, context))
    except (InvalidTag, ValueError):
        raise EnvelopeError("the key does not fit, or somebody changed it, or moved it here from another row") from None


def _bound_to(purpose: Purpose, context: str) -> bytes:
    return b"\0".join((FORMAT.encode(), purpose.value, context.encode()))


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
