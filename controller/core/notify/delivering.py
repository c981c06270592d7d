"""How a letter is signed, what a receiver's answer means, and when the letter is sent again. Pure.

Headers and signature are those of Standard Webhooks (https://www.standardwebhooks.com), which libraries of many
languages verify.
"""

import base64
import binascii
import hashlib
import hmac
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Final, NamedTuple

SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - what every secret begins with
SECRET_BYTES: Final = 32
SECRET_BYTES_MIN: Final = 24  # as the specification has it
SECRET_BYTES_MAX: Final = 64

FIRST_BACKOFF_MS: Final = 2_000
LAST_BACKOFF_MS: Final = 3_600_000
GIVE_UP_AFTER_MS: Final = 24 * 3_600_000
_GONE: Final = 410
_JITTER: Final = 0.2


class SecretError(ValueError):
    """A webhook's secret is malformed. The message says what it must look like."""


def make_secret(key: bytes) -> str:
    return SECRET_PREFIX + base64.b64encode(key).decode()


def secret_key(secret: str) -> bytes:
    """The key of a secret's text. Raises SecretError."""
    if not secret.startswith(SECRET_PREFIX):
        raise SecretError(f"must begin with {SECRET_PREFIX}, and go on in base64; leave it out to get one made")
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except binascii.Error:
        raise SecretError(f"is no base64 after {SECRET_PREFIX}; leave it out to get one made") from None
    if not SECRET_BYTES_MIN <= len(key) <= SECRET_BYTES_MAX:
        raise SecretError(f"has {len(key)} bytes; it must have {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX}")
    return key


def headers(secret: str, event_id: str, sent_s: int, body: bytes) -> dict[str, str]:
    """The headers of one try. `sent_s`: seconds since 1970; receivers compare them with their own clock."""
    signed = f"{event_id}.{sent_s}.".encode() + body
    signature = base64.b64encode(hmac.new(secret_key(secret), signed, hashlib.sha256).digest()).decode()
    return {"webhook-id": event_id, "webhook-timestamp": str(sent_s), "webhook-signature": f"v1,{signature}"}


class Next(Enum):
    """What becomes of a delivery."""

    DELIVERED = "delivered"
    RETRY = "retry"
    GIVEN_UP = "given_up"
    GONE = "gone"  # the receiver wants no more, ever


class Answer(NamedTuple):
    """`status` None: there was none, and `error` says why. `retry_after`: the header, where there was one."""

    status: int | None
    error: str
    retry_after: str | None = None


class DeliveryVerdict(NamedTuple):
    next: Next
    retry_ms: int = 0


def judged(answer: Answer, attempt: int, age_ms: int, now_ms: int, draw: float) -> DeliveryVerdict:
    """What follows from the answer to the `attempt`-th try (from 1), `age_ms` after the delivery began. `draw`: in [0,
    1), for jitter.

    `now_ms`: since 1970, for a receiver that names a date.
    """
    if answer.status is not None and 200 <= answer.status < 300:
        return DeliveryVerdict(Next.DELIVERED)
    if answer.status == _GONE:
        return DeliveryVerdict(Next.GONE)
    if age_ms >= GIVE_UP_AFTER_MS:
        return DeliveryVerdict(Next.GIVEN_UP)
    wait_ms = int(min(FIRST_BACKOFF_MS * 2 ** min(attempt - 1, 30), LAST_BACKOFF_MS) * (1 + _JITTER * (2 * draw - 1)))
    wait_ms = max(wait_ms, min(retry_after_ms(answer.retry_after, now_ms) or 0, GIVE_UP_AFTER_MS))
    # The last try comes right at the end of the 24 hours, and not up to an hour before.
    return DeliveryVerdict(Next.RETRY, max(min(wait_ms, GIVE_UP_AFTER_MS - age_ms), FIRST_BACKOFF_MS // 2))


def retry_after_ms(header: str | None, now_ms: int) -> int | None:
    """How long a Retry-After header asks to wait: seconds, or until a date (RFC 9110, 10.2.3). None: it has neither."""
    if header is None:
        return None
    text = header.strip()
    if text.isascii() and text.isdigit():
        return min(int(text[:12]) * 1_000, GIVE_UP_AFTER_MS)
    try:
        return max(0, int(parsedate_to_datetime(text).timestamp() * 1_000) - now_ms)
    except (ValueError, OverflowError):  # OverflowError: a year or an offset beyond a C int
        return None
