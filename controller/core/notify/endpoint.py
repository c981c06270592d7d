"""A webhook's URL and the key of its signatures, which are kept encrypted. Pure."""

import json
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Both are secrets. Many URLs have a token in their path or query: who knows it may post there."""

    url: str = field(repr=False)
    secret: str = field(repr=False)

    def packed(self) -> bytes:
        return json.dumps([self.url, self.secret], separators=(",", ":")).encode()

    @classmethod
    def unpacked(cls, raw: bytes) -> Self:
        """What `packed` gave. Raises ValueError."""
        url, secret = json.loads(raw)
        return cls(str(url), str(secret))


def origin(url: str) -> str:
    """Scheme, host and port of a webhook's URL: the only parts that are ever shown."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
