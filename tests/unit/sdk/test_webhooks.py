"""cronring.webhooks.verify, held against the specification's own vector and against what controllers sign."""

import base64
import hashlib
import hmac
import json

import pytest

from cronring.controller.core.notify.delivering import headers, make_secret
from cronring.webhooks import VerificationError, verify

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = b'{"test": 2432232314}'
SENT = 1614265330
HEADERS = {
    "Webhook-Id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "Webhook-Timestamp": str(SENT),
    "Webhook-Signature": "v1,AAAA v1a,zzzz v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}


def test_the_specifications_own_message_is_genuine() -> None:
    assert verify(SECRET, HEADERS, BODY, now_s=SENT + 10) == {"test": 2432232314}
    assert verify(SECRET.removeprefix("whsec_"), HEADERS, BODY.decode(), now_s=SENT - 10) == {"test": 2432232314}


def test_what_a_controller_signs_is_genuine() -> None:
    secret, body = make_secret(b"k" * 32), json.dumps({"id": "evt_1", "job": "bücher.zählen"}).encode()
    assert verify(secret, headers(secret, "evt_1", SENT, body), body, now_s=SENT)["job"] == "bücher.zählen"


@pytest.mark.parametrize(
    ("changes", "body", "now_s", "words"),
    [
        ({}, BODY + b" ", SENT, "no signature fits"),
        ({"Webhook-Id": "msg_other"}, BODY, SENT, "no signature fits"),
        ({"Webhook-Timestamp": str(SENT + 1)}, BODY, SENT, "no signature fits"),
        ({"Webhook-Signature": "v1,"}, BODY, SENT, "no signature fits"),
        ({"Webhook-Id": "\udcff"}, BODY, SENT, "no signature fits"),  # as some servers tell bytes that are no text
        ({"Webhook-Signature": "v1,\udcff"}, BODY, SENT, "no signature fits"),
        ({"Webhook-Signature": "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}, BODY, SENT, "no signature fits"),
        ({}, BODY, SENT + 301, "too old"),
        ({}, BODY, SENT - 301, "301 s ahead"),
    ],
)
def test_what_is_not_genuine_is_refused(changes: dict[str, str], body: bytes, now_s: float, words: str) -> None:
    with pytest.raises(VerificationError, match=words):
        verify(SECRET, HEADERS | changes, body, now_s=now_s)


def test_missing_headers_are_named_and_a_bad_secret_is_ours() -> None:
    with pytest.raises(VerificationError, match="webhook-id"):
        verify(SECRET, {}, BODY)
    with pytest.raises(ValueError, match="whsec_") as raised:
        verify("whsec_no base64", HEADERS, BODY)
    assert not isinstance(raised.value, VerificationError)


@pytest.mark.parametrize("secret", ["", "whsec_", make_secret(b"k" * 23)])
def test_nothing_is_genuine_by_a_key_that_anybody_could_have(secret: str) -> None:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.new(key, f"evt_1.{SENT}.".encode() + BODY, hashlib.sha256).digest()
    forged = {
        "webhook-id": "evt_1",
        "webhook-timestamp": str(SENT),
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }
    with pytest.raises(ValueError, match="the secret is none, or cut"):
        verify(secret, forged, BODY, now_s=SENT)


def signed(stamp: str, body: bytes) -> dict[str, str]:
    made = hmac.new(b"k" * 32, f"evt_1.{stamp}.".encode() + body, hashlib.sha256).digest()
    signature = f"v1,{base64.b64encode(made).decode()}"
    return {"webhook-id": "evt_1", "webhook-timestamp": stamp, "webhook-signature": signature}


@pytest.mark.parametrize(
    ("stamp", "body", "words"),
    [
        ("9" * 400, b"{}", "no number of seconds"),  # more than a float holds
        ("9" * 5_000, b"{}", "no number of seconds"),  # more than int() reads
        (str(SENT), b"[", "no JSON"),
        (str(SENT), b"[" * 100_000, "no JSON"),
        (str(SENT), b"\xff", "no JSON"),
        (str(SENT), b"[]", "no JSON object"),
    ],
)
def test_whatever_is_signed_is_an_event_or_a_verification_error(stamp: str, body: bytes, words: str) -> None:
    with pytest.raises(VerificationError, match=words):
        verify(make_secret(b"k" * 32), signed(stamp, body), body, now_s=SENT)


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_characters_that_no_bytes_become_are_refused(name: str) -> None:
    headers = signed(str(SENT), b"{}") | {name: "v1,\ud800"}
    with pytest.raises(VerificationError):
        verify(make_secret(b"k" * 32), headers, "\ud800", now_s=SENT)
