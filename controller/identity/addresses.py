"""Which URLs keys may be fetched from."""

import ipaddress
from urllib.parse import urlsplit


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


def is_loopback(host: str) -> bool:
    """By its text alone: a name may lead anywhere, but for `localhost`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
