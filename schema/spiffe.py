"""Names in certificates: SPIFFE ids of controllers and runners, as the URI in a certificate's SAN.

    spiffe://CLUSTER/controller/NAME
    spiffe://CLUSTER/runner/NAMESPACE/GRANT

A certificate names what outlives a process: a controller's name, or the grant that a runner came by. A process adds
what tells it from others: `NAME-1f2e3d`, and `GRANT.host-4711-89ab`. So one certificate serves all replicas of a
deployment, and a restarted one is not its former self.

Source: https://github.com/spiffe/spiffe/blob/main/standards/SPIFFE-ID.md (sections 2 and 4).
"""

import re
from enum import StrEnum
from typing import Final, NamedTuple

SCHEME: Final = "spiffe://"
DEFAULT_CLUSTER: Final = "cronring"
URI_LENGTH_MAX: Final = 2_048
GRANT_LENGTH_MAX: Final = 63
# A trust domain, in lower case and short enough to stand in a DNS name behind "controller.".
_CLUSTER: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?", re.ASCII)
_SEGMENT: Final = re.compile(r"[A-Za-z0-9._-]{1,255}", re.ASCII)
_GRANT: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)


class SpiffeError(ValueError):
    """No name of ours. The message says what a right one looks like."""


class PeerKind(StrEnum):
    CONTROLLER = "controller"
    RUNNER = "runner"


class SpiffeName(NamedTuple):
    """What a certificate says of its holder. `namespace`: of a runner; "" of a controller."""

    cluster: str
    kind: PeerKind
    namespace: str
    name: str

    @property
    def uri(self) -> str:
        where = f"{self.namespace}/" if self.kind is PeerKind.RUNNER else ""
        return f"{SCHEME}{self.cluster}/{self.kind}/{where}{self.name}"

    def fits(self, process_id: str) -> bool:
        """Whether a process that calls itself so may hold this certificate."""
        if self.kind is PeerKind.RUNNER:
            return process_id == self.name or process_id.partition(".")[0] == self.name
        return process_id == self.name or process_id.rpartition("-")[0] == self.name


def check_cluster(name: str) -> str:
    """The name, if a cluster may be called so. Raises SpiffeError."""
    if not _CLUSTER.fullmatch(name) or ".." in name:
        raise SpiffeError(
            f"{name[:80]!r} is no name of a cluster: it may have lower-case letters, digits, '-' and '.',"
            " 63 characters at most, and begins and ends with a letter or digit"
        )
    return name


def is_grant(name: str) -> bool:
    """Whether a runner's grant may be called so."""
    return _GRANT.fullmatch(name) is not None


def check_grant(name: str) -> str:
    """The name, if a runner's grant may be called so. Raises SpiffeError."""
    if not is_grant(name):
        raise SpiffeError(
            f"{name[:80]!r} is no name of a grant: it may have lower-case letters, digits and '-',"
            f" {GRANT_LENGTH_MAX} characters at most, and begins and ends with a letter or digit"
        )
    return name


def controller_name(cluster: str, name: str) -> SpiffeName:
    """Raises SpiffeError."""
    if not _SEGMENT.fullmatch(name) or name in {".", ".."}:
        raise SpiffeError(f"{name[:80]!r} is no name of a controller: letters, digits, '.', '_' and '-' make one")
    return SpiffeName(check_cluster(cluster), PeerKind.CONTROLLER, "", name)


def runner_name(cluster: str, namespace: str, grant: str) -> SpiffeName:
    """Raises SpiffeError."""
    if not _SEGMENT.fullmatch(namespace) or namespace in {".", ".."}:
        raise SpiffeError(f"{namespace[:80]!r} is no namespace that a certificate can name")
    return SpiffeName(check_cluster(cluster), PeerKind.RUNNER, namespace, check_grant(grant))


def server_name(cluster: str) -> str:
    """The DNS name that every controller's certificate has: addresses come from gossip, and prove nothing."""
    return f"controller.{cluster}"


def parse_uri(uri: str) -> SpiffeName:
    """Raises SpiffeError for what is no name of a controller or runner."""
    if len(uri) <= URI_LENGTH_MAX and uri.startswith(SCHEME):
        match uri.removeprefix(SCHEME).split("/"):
            case [cluster, "controller", name]:
                return controller_name(cluster, name)
            case [cluster, "runner", namespace, grant]:
                return runner_name(cluster, namespace, grant)
    raise SpiffeError(
        f"{uri[:120]!r} names neither a controller nor a runner: it must be {SCHEME}CLUSTER/controller/NAME"
        f" or {SCHEME}CLUSTER/runner/NAMESPACE/GRANT"
    )
