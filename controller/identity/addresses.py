"""Which URLs keys may be fetched from."""

from urllib.parse import urlsplit

from cronring.schema.address import is_loopback


def is_safe(url: str) -> bool:
    """https; or http to this very machine, where nobody is in between. Without a password, which errors would tell."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        _ = parts.port  # raises for what is none
    except ValueError:
        return False
    if not host or "@" in parts.netloc or not url.isascii() or not url.isprintable() or " " in url:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
