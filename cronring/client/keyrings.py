"""The keyring of the operating system, by the package `keyring`, where that is installed and finds one.

Whatever a keyring of somebody's fails with, there is a file to go on with. So its errors are all alike.
"""

import contextlib
import importlib
from typing import Any, Final

SERVICE: Final = "cronring"
PRIORITY_MIN: Final = 1  # what has less keeps secrets in plain files, or nowhere


def put_secret(name: str, secret: str) -> bool:
    """Whether it is kept there from now on."""
    ring = _keyring()
    if ring is None:
        return False
    with contextlib.suppress(Exception):
        ring.set_password(SERVICE, name, secret)
        return bool(ring.get_password(SERVICE, name) == secret)
    return False


def get_secret(name: str) -> str | None:
    ring = _keyring()
    if ring is None:
        return None
    with contextlib.suppress(Exception):
        found = ring.get_password(SERVICE, name)
        return found if isinstance(found, str) else None
    return None


def remove_secret(name: str) -> None:
    ring = _keyring()
    if ring is not None:
        with contextlib.suppress(Exception):
            ring.delete_password(SERVICE, name)


def _keyring() -> Any:
    """The module; None where there is none, or where it has found nothing better than a file."""
    try:
        ring = importlib.import_module("keyring")
        return ring if ring.get_keyring().priority >= PRIORITY_MIN else None
    except Exception:
        return None
