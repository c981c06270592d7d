"""What is wrong with a database URL, said without a piece of it: any piece may be one of its password.

A password with a # or a / in it moves the borders of all other parts, for every reader of URLs. What then looks like a
host or a port, and is named in that reader's complaint, is a part of the password. So URLs are looked at here first.
"""

import re
from typing import Final

from cronring.controller.store.hosts import named_hosts

_BROKEN_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_SPELLING: Final = (
    "in a user's name and a password write %23 for #, %2F for /, %3A for :, %3F for ?, %40 for @ and %25 for %; "
    "or leave the password out, and give it by PGPASSWORD or PGPASSFILE"
)


def url_fault(url: str) -> str:
    """In words that hold nothing of the URL; "" if its parts can be told apart."""
    scheme, _, rest = url.partition("://")
    if scheme not in {"postgresql", "postgres"} or not rest:
        return "it must begin with postgresql://, as in postgresql://user:password@host/database"
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "#" in rest or "@" in rest[len(authority) :]:
        return f"it has a # in it, or an @ behind its first / or ?: {_SPELLING}"
    if _BROKEN_ESCAPE.search(authority):
        return f"it has a % without two hexadecimal digits behind it: {_SPELLING}"
    try:
        named_hosts(url)
    except ValueError:
        return f"what stands behind a host's colon is no port, or the host is none: {_SPELLING}"
    return ""


def has_password(url: str) -> bool:
    """Whether it holds one, or may: what can't be taken apart is taken for one."""
    authority = re.split(r"[/?]", url.partition("://")[2], maxsplit=1)[0]
    named = authority.rpartition("@")[0].partition(":")[2] or re.search(r"[?&]password=[^&]", url)
    return bool(named or url_fault(url))
