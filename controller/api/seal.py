"""What clients keep for us and send back, page tokens and resume tokens: nothing is read that was not given out here.

All of them are sealed by one key, which `cronring migrate` makes and PostgreSQL keeps: what one controller gave out,
every controller of that installation takes.
"""

import base64
import hashlib
import hmac
from typing import Final

MAC_BYTES: Final = 16
# Ids of what runs pack well: this is enough for hundreds of thousands. What is longer is not even hashed.
TOKEN_LENGTH_MAX: Final = 1_000_000


class NotSealedError(ValueError):
    """A token that nobody here gave out, or of another kind."""


class Seal:
    """`key`: 32 bytes, of store.keys.seal_key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def seal(self, kind: str, body: bytes) -> str:
        """A token: printable ASCII. Whoever holds it can read the body, and can't make another one."""
        return base64.urlsafe_b64encode(self._mac(kind, body) + body).decode().rstrip("=")

    def open(self, kind: str, token: str) -> bytes:
        """The body of a token of that kind. Raises NotSealedError."""
        if len(token) > TOKEN_LENGTH_MAX:
            raise NotSealedError
        try:
            sealed = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        except ValueError:
            raise NotSealedError from None
        mac, body = sealed[:MAC_BYTES], sealed[MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(kind, body)):
            raise NotSealedError
        return body

    def _mac(self, kind: str, body: bytes) -> bytes:
        return hmac.digest(self._key, f"{kind}\0".encode() + body, hashlib.sha256)[:MAC_BYTES]
