"""HOST:PORT, as members of a cluster tell each other where they are. Anybody may have written it."""

import ipaddress
import re
from typing import Final

PORT_MAX: Final = 65_535
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
    """Whether it is one that may be dialled: no path, no scheme, nothing that isn't printed."""
    match = _ADDRESS.fullmatch(text)
    return match is not None and match["host"].lower() not in _SCHEMES and 0 < int(match["port"]) <= PORT_MAX


def is_loopback(host: str) -> bool:
    """Whether only this machine can be meant by it: `localhost`, 127.0.0.0/8, ::1. A name isn't looked up."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False
