"""What clients send back is read only if it was given out here."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronring.controller.api.token_box import TOKEN_LENGTH_MAX, StrangeTokenError, TokenBox
from tests.support.boxes import BOX

OTHER = TokenBox(b"another key of 32 bytes or more.")


@given(st.text(max_size=20), st.binary(max_size=200))
def test_what_is_locked_is_opened_by_whoever_has_the_key(kind: str, body: bytes) -> None:
    token = BOX.lock(kind, body)
    assert token.isascii()
    assert not set(token) & set("+/=% \n")
    assert TokenBox(b"k" * 32).open(kind, token) == body


@given(st.binary(max_size=60), st.data())
def test_a_changed_token_is_refused(body: bytes, data: st.DataObject) -> None:
    token = BOX.lock("page", body)
    at = data.draw(st.integers(0, len(token) - 1))
    changed = token[:at] + data.draw(st.sampled_from("Aa0-_=é\0")) + token[at + 1 :]
    try:
        opened = BOX.open("page", changed)
    except StrangeTokenError:
        return
    assert opened == body, "another spelling of the same bytes, or nothing"


def test_an_installation_is_known_by_its_key() -> None:
    assert BOX.cluster_id == TokenBox(b"k" * 32).cluster_id != OTHER.cluster_id
    assert len(BOX.cluster_id) == 22


def test_nobody_reads_what_is_locked() -> None:
    body = b"billing/close_month.run and 1,234 others"
    token = BOX.lock("page", body)
    locked = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    assert not any(body[at : at + 4] in locked for at in range(len(body) - 4))
    assert BOX.lock("page", body) == token, "of the same place it is the same one"


@given(st.text(max_size=80))
def test_no_other_text_is_opened(text: str) -> None:
    with pytest.raises(StrangeTokenError):
        BOX.open("page", text)


@pytest.mark.parametrize(
    "token",
    [
        "", "\0", "\ud800", "=", "====", "A" * (TOKEN_LENGTH_MAX + 1), OTHER.lock("page", b"body"),
        BOX.lock("watch jobs", b"body"), base64.urlsafe_b64encode(b"body").decode(), BOX.lock("page", b"body") + "A",
    ],
)  # fmt: skip
def test_what_was_not_given_out_for_this_is_refused(token: str) -> None:
    with pytest.raises(StrangeTokenError):
        BOX.open("page", token)
