"""What a caller may see and do. It is checked after parsing, by the names in the message.

A thing in a namespace that the caller may not view is answered as if it did not exist. docs/decisions/0069
"""

from cronring.controller.errors import Forbidden, NotFound
from cronring.controller.ports.caller import caller
from cronring.controller.ports.reads import Namespaces
from cronring.schema.identity import EVERYWHERE, Permission, Principal, grants_text
from cronring.schema.keys import namespace_of


def forbidden(principal: Principal, permission: Permission, namespace: str) -> Forbidden:
    """The error to raise. `namespace`: EVERYWHERE for all at once, "" for any one."""
    where = {EVERYWHERE: "in all namespaces", "": "in some namespace"}.get(namespace, f"in namespace {namespace!r}")
    return Forbidden(f"this takes {permission} {where}; {principal} has {grants_text(principal.grants)}", principal)


def require(permission: Permission, namespace: str) -> None:
    """`namespace`: named by the request. Raises Forbidden, whether that namespace exists or not."""
    if not caller().may(permission, namespace):
        raise forbidden(caller(), permission, namespace)


def namespaces(permission: Permission, named: str = "") -> Namespaces:
    """The namespaces of a listing: those where the caller has the permission. `named`: by the request, "" for any.

    Raises Forbidden if the caller lacks the permission in the named one.
    """
    if named:
        require(permission, named)
    where = caller().namespaces(permission)
    return None if where is None else tuple(sorted(where))


def sees(key: str) -> bool:
    """Whether the caller may know of what has this key: a job, a deployment, a template."""
    return caller().may(Permission.VIEW, namespace_of(key))


def shows_outputs(key: str) -> bool:
    """Whether the caller may read what authors and their users wrote: outputs, stacks, messages, payloads."""
    return caller().may(Permission.OUTPUTS, namespace_of(key))


def admit(permission: Permission, key: str, unknown: NotFound) -> None:
    """Check a permission on the thing of this key. Raises `unknown` if the caller may not see it, else Forbidden."""
    if not sees(key):
        raise unknown
    require(permission, namespace_of(key))
