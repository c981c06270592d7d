"""Envelopes: what is encrypted opens by its key and in its place, and nowhere else."""

import base64
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronring.trust.envelopes import (
    KEY_BYTES,
    NONCE_BYTES,
    Envelope,
    EnvelopeError,
    Purpose,
    decrypt,
    encrypt,
    new_key,
)

KEY = b"k" * KEY_BYTES
PLACE = "cron_webhooks/pager"


@given(st.binary(max_size=300), st.text(max_size=40))
def test_what_is_encrypted_opens_in_its_place(plain: bytes, place: str) -> None:
    assert decrypt(KEY, encrypt(KEY, plain, Purpose.SECRET, place), Purpose.SECRET, place) == plain


@given(
    st.binary(max_size=64), st.binary(max_size=64), st.sampled_from(["key-1", "kms:arn:aws:kms:eu:1:key/2", "plain"])
)
def test_an_envelope_is_read_as_it_was_written(wrapped: bytes, content: bytes, key_id: str) -> None:
    envelope = Envelope(key_id, wrapped, content)
    assert Envelope.parse(envelope.text()) == envelope
    assert envelope.text().split("$")[1] == key_id, "sql/queries/secrets.sql reads it there"


@given(st.text(max_size=80))
def test_any_other_text_is_none(text: str) -> None:
    for each in (text, f"cronring1${text}", f"cronring1$key-1${text}$"):
        with contextlib.suppress(EnvelopeError):
            assert Envelope.parse(each).text() == each


def test_it_opens_nowhere_else() -> None:
    encrypted = encrypt(KEY, b"xyzzy", Purpose.SECRET, PLACE)
    others = [
        (new_key(), encrypted, Purpose.SECRET, PLACE),
        (KEY, encrypted, Purpose.SECRET, "cron_webhooks/other"),
        (KEY, encrypted, Purpose.KEY, PLACE),
        (KEY, encrypted[:-1] + bytes([encrypted[-1] ^ 1]), Purpose.SECRET, PLACE),
        (KEY, encrypted[: NONCE_BYTES + 3], Purpose.SECRET, PLACE),
        (KEY, b"", Purpose.SECRET, PLACE),
    ]
    for each in others:
        with pytest.raises(EnvelopeError, match="the key does not fit, or somebody changed it, or moved it"):
            decrypt(*each)


def test_the_same_secret_never_looks_the_same() -> None:
    assert len({encrypt(KEY, b"xyzzy", Purpose.SECRET, PLACE) for _ in range(100)}) == 100


def test_what_was_encrypted_by_the_first_release_opens() -> None:
    """The form on disk: a change of it locks what installations have."""
    known = base64.b64decode("bm5ubm5ubm5ubm5u4EKdymjAf9W1NifIR9cseloSyv9h")
    assert decrypt(KEY, known, Purpose.SECRET, PLACE) == b"xyzzy"


def test_it_shows_nothing_of_what_it_holds() -> None:
    assert "xyzzy" not in repr(Envelope("plain", b"", b"xyzzy"))
