"""Tokens that clients keep for us and send back, such as page tokens. Only tokens that we gave out are read.

One key locks all of them. `cronring migrate` makes it, and PostgreSQL keeps it, so each controller takes the tokens of
the others. Clients can't read them: a resume token has ids of all that runs, and its holder may not see all of that
(docs/decisions/0069).
"""

import base64
import hashlib
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

# Ids of what runs pack well: this is enough for hundreds of thousands. What is longer is not even opened.
TOKEN_LENGTH_MAX: Final = 1_000_000


class StrangeTokenError(ValueError):
    """A token that nobody here gave out, or of another kind."""


class TokenBox:
    """`key`: 32 bytes, of store.keys.page_key."""

    def __init__(self, key: bytes) -> None:
        # AES-SIV needs no counter, which controllers would have to share. The same body gives the same token.
        self._cipher = AESSIV(hashlib.sha512(b"tokens of the API\0" + key).digest())

    @property
    def cluster_id(self) -> str:
        """An id by which clients tell installations apart. It is derived from the key, and reveals nothing of it."""
        return self.lock("cluster", b"")

    def lock(self, kind: str, body: bytes) -> str:
        """A token: printable ASCII. Its holder can neither read the body nor make another token."""
        return base64.urlsafe_b64encode(self._cipher.encrypt(body, [kind.encode()])).decode().rstrip("=")

    def open(self, kind: str, token: str) -> bytes:
        """The body of a token of that kind. Raises StrangeTokenError."""
        if len(token) > TOKEN_LENGTH_MAX:
            raise StrangeTokenError
        try:
            locked = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
            return self._cipher.decrypt(locked, [kind.encode()])
        except (ValueError, InvalidTag):
            raise StrangeTokenError from None
