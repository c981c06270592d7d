"""What of a request its caller may see and do. Asked after parsing, by the names that a message has.

Of what lies in a namespace that one may not view, nobody is told that it is there: it is answered like what isn't.
"""

from cronring.controller.errors import Forbidden
from cronring.schema.identity import EVERYWHERE, Permission, Principal, grants_text


def forbidden(principal: Principal, permission: Permission, namespace: str) -> Forbidden:
    """What to raise. `namespace`: EVERYWHERE for all at once, "" for any."""
    where = {EVERYWHERE: "in all namespaces", "": "in some namespace"}.get(namespace, f"in namespace {namespace!r}")
    return Forbidden(f"this takes {permission} {where}; {principal} has {grants_text(principal.grants)}")
