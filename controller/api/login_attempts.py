"""How often one address may try to log in: each try costs a statement, or questions to an issuer."""

import ipaddress
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from cronring.controller.errors import TooMany

ATTEMPTS: Final = 60  # in PERIOD_NS; a login by an issuer is two. A whole office may have one address
PERIOD_NS: Final = 60_000_000_000
ORIGINS_MAX: Final = 1_024
_PREFIX_IPV6: Final = 64  # of which one machine has all addresses


class Attempts:
    """Counts, by address. `now_ns`: a monotonic clock."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._counts: OrderedDict[str, tuple[int, int]] = OrderedDict()  # since when, how many; the oldest first

    def one_more(self, origin: str) -> None:
        """Raises TooMany."""
        key, now_ns = _machine(origin), self._now_ns()
        since_ns, count = self._counts.get(key, (now_ns, 0))
        if now_ns - since_ns >= PERIOD_NS:
            since_ns, count = now_ns, 0
        if count >= ATTEMPTS:
            raise TooMany(f"{ATTEMPTS} logins were tried from {key} within a minute; try again in a minute")
        self._counts[key] = since_ns, count + 1
        self._counts.move_to_end(key)
        if len(self._counts) > ORIGINS_MAX:
            self._counts.popitem(last=False)

    def __len__(self) -> int:
        return len(self._counts)


def _machine(origin: str) -> str:
    """An IPv4 address, or the network of an IPv6 one."""
    try:
        address = ipaddress.ip_address(origin.partition("%")[0])
    except ValueError:
        return origin
    if address.version == 4:
        return str(address)
    return str(ipaddress.ip_network((int(address), _PREFIX_IPV6), strict=False))
