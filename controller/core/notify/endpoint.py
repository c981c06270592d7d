"""Where a webhook is told, and the key of its signatures: what is kept encrypted of it. Pure."""

import json
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Both are secrets: the path or the query of many URLs lets whoever knows it post there."""

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
    """Scheme, host and port of a URL that can be posted to: all that is ever shown of it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
