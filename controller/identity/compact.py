"""A JWT's text in its three parts. Nothing of it is believed here: it is only read, and by what can't be misread.

`kid` and `iss` say where to look for a key, among keys that the operator has named. What a header says of keys besides
(`jku`, `x5u`, `jwk`, `x5c`) is not even looked at.
"""

import base64
import binascii
import json
import re
from typing import Any, Final, NamedTuple

from cronring.controller.ports.identity import TokenRefused

TOKEN_BYTES_MAX: Final = 16 * 1024
KID_LENGTH_MAX: Final = 200
_SHAPE: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")  # who says `none` has no signature


class Compact(NamedTuple):
    """What a token says of itself."""

    text: str
    algorithm: str
    kid: str | None
    claims: dict[str, Any]


def looks_compact(token: str) -> bool:
    return _SHAPE.fullmatch(token) is not None


def read_compact(token: str) -> Compact:
    """Raises TokenRefused."""
    if len(token) > TOKEN_BYTES_MAX:
        raise TokenRefused(f"it has {len(token):,} characters, and a token may have {TOKEN_BYTES_MAX:,}")
    if not looks_compact(token):
        raise TokenRefused("it is no JWT: that has three parts in base64url, with dots between")
    head, body, signature = token.split(".")
    _decoded("signature", signature)
    header = _members("header", head)
    if "crit" in header:
        raise TokenRefused("its header has `crit`, and this controller knows no extension that a token may insist on")
    algorithm = header.get("alg")
    if not isinstance(algorithm, str):
        raise TokenRefused("its header has no `alg` that is a text")
    kid = header.get("kid")
    if kid is not None and not (isinstance(kid, str) and 0 < len(kid) <= KID_LENGTH_MAX):
        raise TokenRefused(f"the `kid` in its header is no text of 1 to {KID_LENGTH_MAX} characters")
    return Compact(token, algorithm, kid, _members("claims", body))


def _decoded(part: str, text: str) -> bytes:
    """Only the one text that these bytes have: others could be one token with many digests."""
    try:
        found = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise TokenRefused(f"its {part} can't be decoded from base64url; is it cut short?") from None
    if base64.urlsafe_b64encode(found).rstrip(b"=") != text.encode():
        raise TokenRefused(f"its {part} can't be decoded from base64url; is it cut short?")
    return found


def _members(part: str, text: str) -> dict[str, Any]:
    raw = _decoded(part, text)
    try:
        value = json.loads(raw.decode(), object_pairs_hook=_once, parse_constant=_refuse_constant)
    except _TwiceError as twice:
        raise TokenRefused(f"there is {twice.args[0]!r:.60} twice in its {part}") from None
    except (ValueError, RecursionError):
        raise TokenRefused(f"its {part} can't be read as JSON") from None
    if not isinstance(value, dict):
        raise TokenRefused(f"its {part} can't be read: it is no object of JSON")
    return value


class _TwiceError(Exception):
    """A name that an object has twice: readers differ in which of them counts."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _TwiceError(name)
        found[name] = value
    return found


def _refuse_constant(name: str) -> None:
    raise ValueError(name)
