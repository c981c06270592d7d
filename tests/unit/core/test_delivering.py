"""Signatures, and what an answer means."""

import json
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from cronring.controller.core.notify.delivering import (
    GIVE_UP_AFTER_MS,
    Answer,
    Next,
    SecretError,
    headers,
    judged,
    make_secret,
    retry_after_ms,
    secret_key,
)
from cronring.controller.core.notify.notices import trial_letter

NOW_MS = 1_772_352_000_000  # 2026-03-01T08:00:00Z


def test_a_signature_is_that_of_the_specification() -> None:
    # Of the reference implementations' own tests (standard-webhooks/standard-webhooks).
    found = headers(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
    )
    assert found == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


BODIES = [b"{}", '{"id": "evt_1", "job": "bücher.zählen"}'.encode(), b'{"n":[' + b"1," * 5_000 + b"1]}"]


@pytest.mark.parametrize("length", [24, 32, 64])
@pytest.mark.parametrize("body", BODIES)
def test_the_library_of_the_specification_signs_alike_and_takes_it(body: bytes, length: int) -> None:
    secret, now = make_secret(bytes(range(length))), datetime.now(UTC).replace(microsecond=0)
    found = headers(secret, "evt_1", int(now.timestamp()), body)
    library = Webhook(secret)
    assert library.sign("evt_1", now, body.decode()) == found["webhook-signature"]
    assert library.verify(body, found) == json.loads(body)
    for name, other in (
        ("webhook-id", "evt_2"),
        ("webhook-timestamp", str(int(now.timestamp()) - 1)),
        ("webhook-signature", found["webhook-signature"].replace("v1,", "v2,")),
    ):
        with pytest.raises(WebhookVerificationError):
            library.verify(body, found | {name: other})
    with pytest.raises(WebhookVerificationError):
        library.verify(body + b" ", found)


def test_a_trial_is_what_the_specification_recommends() -> None:
    letter = trial_letter("c1", "pager", 1_772_352_000_000_001)
    body = json.loads(letter.body)
    assert (body["type"], body["timestamp"]) == ("webhook.test", "2026-03-01T08:00:00.000001Z")
    assert (body["id"], body["data"]["webhook"]) == (letter.event_id, "pager")
    assert datetime.fromisoformat(body["timestamp"]).tzinfo is not None


def test_a_secret_is_read_or_refused() -> None:
    assert secret_key(make_secret(b"k" * 32)) == b"k" * 32
    for text, words in (("abc", "whsec_"), ("whsec_#", "base64"), (make_secret(b"k" * 23), "23 bytes")):
        with pytest.raises(SecretError, match=words):
            secret_key(text)


@pytest.mark.parametrize(("status", "found"), [(200, Next.DELIVERED), (204, Next.DELIVERED), (410, Next.GONE)])
def test_what_ends_a_delivery(status: int, found: Next) -> None:
    assert judged(Answer(status, ""), 1, 0, NOW_MS, 0.5).next is found


@pytest.mark.parametrize("status", [None, 302, 400, 404, 429, 500, 503])
def test_everything_else_is_tried_again(status: int | None) -> None:
    assert judged(Answer(status, "x"), 1, 0, NOW_MS, 0.5) == (Next.RETRY, 2_000)


def test_waits_double_up_to_an_hour_and_are_spread() -> None:
    waits = [judged(Answer(500, "x"), attempt, 0, NOW_MS, 0.5).retry_ms for attempt in (1, 2, 3, 11, 12, 50)]
    assert waits == [2_000, 4_000, 8_000, 2_048_000, 3_600_000, 3_600_000]
    assert judged(Answer(500, "x"), 3, 0, NOW_MS, 0.0).retry_ms == 6_400
    assert judged(Answer(500, "x"), 3, 0, NOW_MS, 0.999).retry_ms < 9_600


def test_it_is_given_up_after_a_day_with_a_last_try_at_its_end() -> None:
    nearly = judged(Answer(500, "x"), 40, GIVE_UP_AFTER_MS - 60_000, NOW_MS, 0.5)
    assert nearly == (Next.RETRY, 60_000)
    assert judged(Answer(500, "x"), 40, GIVE_UP_AFTER_MS, NOW_MS, 0.5).next is Next.GIVEN_UP
    assert judged(Answer(200, ""), 40, GIVE_UP_AFTER_MS, NOW_MS, 0.5).next is Next.DELIVERED


@pytest.mark.parametrize(
    ("header", "wait_ms"),
    [
        (None, None),
        ("120", 120_000),
        ("99999999999999999", GIVE_UP_AFTER_MS),
        ("Sun, 01 Mar 2026 08:05:00 GMT", 300_000),
        ("Sun, 01 Mar 2026 07:00:00 GMT", 0),
        ("soon", None),
        ("-5", None),
        ("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", None),
        ("Mon, 01 Jan 2026 00:00:00 +99999999999999999999", None),
        ("Mon, 01 Jan 0001 00:00:00 -0000", 0),
    ],
)
def test_retry_after_is_read_in_seconds_or_as_a_date(header: str | None, wait_ms: int | None) -> None:
    assert retry_after_ms(header, NOW_MS) == wait_ms


def test_retry_after_lengthens_a_wait_and_never_shortens_one() -> None:
    assert judged(Answer(429, "x", "120"), 1, 0, NOW_MS, 0.5).retry_ms == 120_000
    assert judged(Answer(429, "x", "1"), 5, 0, NOW_MS, 0.5).retry_ms == 32_000
