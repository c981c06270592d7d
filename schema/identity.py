"""Who acts, and what they may do: roles, permissions, principals.

A principal holds roles, each in one namespace or in all of them. A method of the API asks for one permission. There are
few roles and permissions: finer rights are given by more namespaces.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

EVERYWHERE: Final = "*"  # in place of a namespace
PRINCIPAL_LENGTH_MAX: Final = 200


class Permission(StrEnum):
    """What a method asks for."""

    VIEW = "view"  # jobs, executions, deployments, the cluster: names, times, outcomes
    OUTPUTS = "outputs"  # what authors and their users wrote: outputs, stacks, payloads, deliveries
    OPERATE = "operate"  # change jobs, executions and templates
    DEPLOY = "deploy"  # change deployments
    CONSUME = "consume"  # put messages into queues, take them and end them
    ADMIN = "admin"  # limits, webhooks, tokens, drills, the cluster


class Role(StrEnum):
    """What is given to somebody."""

    VIEWER = "viewer"
    OUTPUTS_VIEWER = "outputs-viewer"
    OPERATOR = "operator"
    DEPLOYER = "deployer"
    CONSUMER = "consumer"
    ADMIN = "admin"


PERMISSIONS: Final[Mapping[Role, frozenset[Permission]]] = {
    Role.VIEWER: frozenset({Permission.VIEW}),
    Role.OUTPUTS_VIEWER: frozenset({Permission.VIEW, Permission.OUTPUTS}),
    Role.OPERATOR: frozenset({Permission.VIEW, Permission.OUTPUTS, Permission.OPERATE, Permission.CONSUME}),
    # A pipeline deploys and sees that it came about. It has no business with what runs print.
    Role.DEPLOYER: frozenset({Permission.VIEW, Permission.DEPLOY}),
    # A service that works on messages sees those that it takes, and nothing else.
    Role.CONSUMER: frozenset({Permission.CONSUME}),
    Role.ADMIN: frozenset(Permission),
}


class Kind(StrEnum):
    """How somebody is known."""

    TOKEN = "token"  # noqa: S105  # of `cronring token create`
    USER = "user"  # by a JWT of an issuer
    RUNNER = "runner"  # by a certificate
    CONTROLLER = "controller"  # by a certificate
    JOIN = "join"  # by the join token of a runner grant: who enrolls, and has no certificate yet
    DATABASE = "database"  # by a role of PostgreSQL: who works on the database itself
    LOCAL = "local"  # by being on this machine, with --insecure: nobody in particular


class RoleGrant(NamedTuple):
    """A role in a namespace, or EVERYWHERE."""

    role: Role
    namespace: str = EVERYWHERE


class Principal(NamedTuple):
    """Who acts. `name` is unique within its kind. `expires_us`: when the proof of it expires; None: it does not."""

    kind: Kind
    name: str
    grants: tuple[RoleGrant, ...] = ()
    expires_us: int | None = None

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}" if self.name else self.kind.value

    def namespaces(self, permission: Permission) -> frozenset[str] | None:
        """Where it has that permission; None: everywhere."""
        where = {grant.namespace for grant in self.grants if permission in PERMISSIONS[grant.role]}
        return None if EVERYWHERE in where else frozenset(where)

    def may(self, permission: Permission, namespace: str) -> bool:
        """Whether it has that permission there. EVERYWHERE asks for all namespaces at once."""
        where = self.namespaces(permission)
        return where is None or namespace in where


LOCAL: Final = Principal(Kind.LOCAL, "", (RoleGrant(Role.ADMIN),))
"""Whoever calls a controller that runs with --insecure."""

NOBODY: Final = Principal(Kind.LOCAL, "nobody")
"""Where no door has said who calls."""


def grants_text(grants: Iterable[RoleGrant]) -> str:
    """`operator@billing, viewer@*`, for people."""
    return ", ".join(f"{grant.role}@{grant.namespace}" for grant in grants) or "no role"
