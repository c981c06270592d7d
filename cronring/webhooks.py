"""For receivers of cronring's webhooks: is this one genuine, and what does it say? Standard library only.

    import cronring.webhooks

    event = cronring.webhooks.verify(SECRET, request.headers, request.body)   # raises VerificationError
    if not seen(event["id"]):                                                 # the same id may come more than once
        act_on(event["type"], event["data"])

The rules are those of Standard Webhooks (https://www.standardwebhooks.com): HMAC-SHA256 over "id.timestamp.body".
"""

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import Any, Optional, Union

TOLERANCE_S = 300.0

_PREFIX = "whsec_"
_STAMP_DIGITS_MAX = 12  # to the year 33658
_KEY_BYTES_MIN = 24  # of the specification; with an empty one anybody could sign


class VerificationError(ValueError):
    """It is not genuine, or too old: answer 400, and do nothing. The message says why."""


def verify(
    secret: str,
    headers: Mapping[str, str],
    body: Union[bytes, str],
    *,
    tolerance_s: float = TOLERANCE_S,
    now_s: Optional[float] = None,
) -> dict[str, Any]:
    """The event, if its sender has the secret, and its timestamp is within `tolerance_s` seconds of `now_s`.

    `secret`: as `cronring webhook add` showed it. `headers`: names in upper or lower case. `body`: the raw body as it
    came, since JSON that was parsed and written again has another signature. `now_s`: seconds since 1970, by default
    this host's clock. Raises VerificationError; ValueError if `secret` is not a webhook's secret.
    """
    given = {name.lower(): value for name, value in headers.items()}
    try:
        own_id, stamp, signatures = (given[f"webhook-{name}"] for name in ("id", "timestamp", "signature"))
    except KeyError as error:
        raise VerificationError(f"there is no header {error.args[0]}") from None
    raw = _bytes(body) if isinstance(body, str) else bytes(body)
    expected = base64.b64encode(hmac.new(_key(secret), _bytes(f"{own_id}.{stamp}.") + raw, hashlib.sha256).digest())
    # One signature for each secret that the sender has, separated by spaces. Versions other than v1 are ignored.
    found = [_bytes(part.partition(",")[2]) for part in signatures.split() if part.startswith("v1,")]
    if not any([hmac.compare_digest(expected, each) for each in found]):  # noqa: C419 - all of them, in constant time
        raise VerificationError("no signature fits: another secret, or a body that was changed on its way")
    _check_age(stamp, time.time() if now_s is None else now_s, tolerance_s)  # noqa: TID251 - a receiver's own clock
    try:
        event = json.loads(raw)
    except (ValueError, RecursionError):
        raise VerificationError("the body is no JSON") from None
    if not isinstance(event, dict):
        raise VerificationError("the body is no JSON object")
    return event


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except binascii.Error:
        key = b""
    if len(key) < _KEY_BYTES_MIN:
        raise ValueError(f"the secret is none, or cut: it begins with {_PREFIX}, and goes on in 32 or more of base64")
    return key


def _bytes(text: str) -> bytes:
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        raise VerificationError("it holds characters that were never sent") from None


def _check_age(stamp: str, now_s: float, tolerance_s: float) -> None:
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) <= _STAMP_DIGITS_MAX):
        raise VerificationError("webhook-timestamp is no number of seconds")
    age_s = now_s - int(stamp)
    if age_s > tolerance_s:
        raise VerificationError(f"it was sent {age_s:.0f} s ago by this host's clock: too old, or replayed")
    if age_s < -tolerance_s:
        raise VerificationError(f"it was sent {-age_s:.0f} s ahead of this host's clock: one of both clocks is wrong")
