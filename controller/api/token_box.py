"""What clients keep for us and send back, page tokens and resume tokens: nothing is read that was not given out here.

All of them are locked by one key, which `cronring migrate` makes and PostgreSQL keeps: what one controller gave out,
every controller of that installation takes. Nor can clients read them: a resume token has ids of all that runs, and
its holder may not see all of that (docs/decisions/0069).
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
        # Of the same body it makes the same token, and wants no counter that controllers would have to share.
        self._cipher = AESSIV(hashlib.sha512(b"tokens of the API\0" + key).digest())

    @property
    def cluster_id(self) -> str:
        """By which clients tell installations apart: it follows from the key, and tells nothing of it."""
        return self.lock("cluster", b"")

    def lock(self, kind: str, body: bytes) -> str:
        """A token: printable ASCII. Whoever holds it can neither read the body nor make another one."""
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
