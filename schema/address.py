"""Addresses: HOST:PORT, as members of a cluster tell each other, and peers as gRPC writes them."""

import ipaddress
import re
from typing import Final
from urllib.parse import unquote

PORT_MAX: Final = 65_535
SITE_BITS: Final = 64  # of an IPv6 address: a host has all addresses of its site
# A name, an IPv4 address, or an IPv6 one in brackets; of ASCII, and no longer than DNS has them.
_ADDRESS: Final = re.compile(
    r"(?P<host>[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,251}[A-Za-z0-9_.])?|\[[0-9A-Fa-f:.]{2,45}(?:%[A-Za-z0-9_.-]{1,20})?\])"
    r":(?P<port>[0-9]{1,5})"
)
# What gRPC takes for another kind of target when a colon follows: unix:7400 is a file.
_SCHEMES: Final = frozenset({
    "unix", "unix-abstract", "vsock", "dns", "ipv4", "ipv6", "xds", "google-c2p", "passthrough", "fd", "http", "https",
})  # fmt: skip


def is_address(text: str) -> bool:
    """Whether the address may be dialled: it has no path, no scheme, and only printable characters."""
    match = _ADDRESS.fullmatch(text)
    return match is not None and match["host"].lower() not in _SCHEMES and 0 < int(match["port"]) <= PORT_MAX


def is_loopback(host: str) -> bool:
    """Whether the host can only be this machine: `localhost`, 127.0.0.0/8, ::1. A name isn't looked up."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False


def host_of(peer: str) -> str:
    """A peer as people read it: the host (`::1`) of an address as gRPC writes it (`ipv6:%5B::1%5D:7`).

    The port is left out, as it differs at each connection. A text that is no address stays as it is.
    """
    kind, _, rest = peer.partition(":")
    return unquote(rest).rpartition(":")[0].strip("[]") if kind in {"ipv4", "ipv6"} else peer


def site_of(peer: str) -> str:
    """A peer as limits count it. For IPv6 it is the site's 64 bits, as a host has all addresses of its site.

    A mapped IPv4 address counts as the IPv4 one. A peer without an address counts by its kind, like `unix`.
    """
    kind = peer.partition(":")[0]
    host = host_of(peer).partition("%")[0]
    if kind == "ipv4":
        return host
    try:
        address = ipaddress.IPv6Address(host)
    except ValueError:
        return kind
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(address), SITE_BITS), strict=False))
