"""What clients send back is read only if it was given out here."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronring.controller.api.seal import TOKEN_LENGTH_MAX, NotSealedError, Seal
from tests.support.sealing import SEAL

OTHER = Seal(b"another key of 32 bytes or more.")


@given(st.text(max_size=20), st.binary(max_size=200))
def test_what_is_sealed_is_opened_by_whoever_has_the_key(kind: str, body: bytes) -> None:
    token = SEAL.seal(kind, body)
    assert token.isascii()
    assert not set(token) & set("+/=% \n")
    assert Seal(b"k" * 32).open(kind, token) == body


@given(st.binary(max_size=60), st.data())
def test_a_changed_token_is_refused(body: bytes, data: st.DataObject) -> None:
    token = SEAL.seal("page", body)
    at = data.draw(st.integers(0, len(token) - 1))
    changed = token[:at] + data.draw(st.sampled_from("Aa0-_=é\0")) + token[at + 1 :]
    try:
        opened = SEAL.open("page", changed)
    except NotSealedError:
        return
    assert opened == body, "another spelling of the same bytes, or nothing"


def test_nobody_reads_what_is_sealed() -> None:
    body = b"billing/close_month.run and 1,234 others"
    token = SEAL.seal("page", body)
    sealed = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    assert not any(body[at : at + 4] in sealed for at in range(len(body) - 4))
    assert SEAL.seal("page", body) == token, "of the same place it is the same one"


@given(st.text(max_size=80))
def test_no_other_text_is_opened(text: str) -> None:
    with pytest.raises(NotSealedError):
        SEAL.open("page", text)


@pytest.mark.parametrize(
    "token",
    [
        "", "\0", "\ud800", "=", "====", "A" * (TOKEN_LENGTH_MAX + 1), OTHER.seal("page", b"body"),
        SEAL.seal("watch jobs", b"body"), base64.urlsafe_b64encode(b"body").decode(), SEAL.seal("page", b"body") + "A",
    ],
)  # fmt: skip
def test_what_was_not_given_out_for_this_is_refused(token: str) -> None:
    with pytest.raises(NotSealedError):
        SEAL.open("page", token)
