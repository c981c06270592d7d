"""What of a request its caller may see and do. Asked after parsing, by the names that a message has.

Of what lies in a namespace that one may not view, nobody is told that it is there: it is answered like what isn't.
docs/decisions/0069
"""

from cronring.controller.errors import Forbidden, NotFound
from cronring.controller.ports.caller import caller
from cronring.controller.ports.reads import Namespaces
from cronring.schema.identity import EVERYWHERE, Permission, Principal, grants_text
from cronring.schema.keys import namespace_of


def forbidden(principal: Principal, permission: Permission, namespace: str) -> Forbidden:
    """What to raise. `namespace`: EVERYWHERE for all at once, "" for any."""
    where = {EVERYWHERE: "in all namespaces", "": "in some namespace"}.get(namespace, f"in namespace {namespace!r}")
    return Forbidden(f"this takes {permission} {where}; {principal} has {grants_text(principal.grants)}", principal)


def require(permission: Permission, namespace: str) -> None:
    """Of a namespace that the request names. Raises Forbidden, whether there is such a namespace or not."""
    if not caller().may(permission, namespace):
        raise forbidden(caller(), permission, namespace)


def namespaces(permission: Permission, named: str = "") -> Namespaces:
    """What a listing is confined to: where the caller has the permission. `named`: by the request, "" for any.

    Raises Forbidden for a named one that is outside.
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
    """To what has this key. Raises `unknown`, which is what it would be if nothing had it; Forbidden to who sees it."""
    if not sees(key):
        raise unknown
    require(permission, namespace_of(key))
