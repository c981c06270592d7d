"""What is wrong with a database URL, said without quoting it: any part may belong to the password.

A # or a / in the password moves the borders of all other parts. Then a part of the password looks like a host or a
port, and a parser's error message would show it. So URLs are checked here first.
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
    """The fault in words without any part of the URL; "" if the URL can be parsed."""
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
    """Whether the URL has a password, or may have one: a URL that can't be parsed counts as such."""
    authority = re.split(r"[/?]", url.partition("://")[2], maxsplit=1)[0]
    named = authority.rpartition("@")[0].partition(":")[2] or re.search(r"[?&]password=[^&]", url)
    return bool(named or url_fault(url))
