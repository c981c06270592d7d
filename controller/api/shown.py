"""What a call shows of its caller: headers, certificate, address. It is judged by these."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from aiohttp import hdrs, web


class Shown(Protocol):
    """What a call shows of its caller. gRPC's contexts are such; HTTP's requests are made one."""

    def invocation_metadata(self) -> Any:
        """Pairs of a header's name, in lower case, and its value."""

    def auth_context(self) -> Mapping[str, Iterable[bytes]]:
        """What TLS knows."""
        ...

    def peer(self) -> str:
        """The address, as gRPC writes it."""
        ...


class RequestShown:
    """What a request of HTTP shows. `authorizations`: in place of its own headers of that name."""

    def __init__(self, request: web.Request, authorizations: Sequence[str] | None = None) -> None:
        self._request = request
        self._authorizations = authorizations

    def invocation_metadata(self) -> list[tuple[str, str]]:
        given = self._authorizations
        if given is None:
            given = self._request.headers.getall(hdrs.AUTHORIZATION, [])
        return [("authorization", value) for value in given]

    def auth_context(self) -> Mapping[str, Iterable[bytes]]:
        """Nothing: certificates are for --peer."""
        return {}

    def peer(self) -> str:
        transport = self._request.transport
        name = None if transport is None else transport.get_extra_info("peername")
        if not name:
            return ""
        host, port = name[:2]
        return f"ipv6:[{host}]:{port}" if ":" in host else f"ipv4:{host}:{port}"
