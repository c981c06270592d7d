"""How secrets look that are given out, and what is kept of them."""

import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronring.schema.tokens import SECRET_BYTES, SecretKind, is_of_kind, make_secret_text, secret_fault, secret_hash

ZEROS = "crt_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA_38f5b0"
SECRETS = st.binary(min_size=SECRET_BYTES, max_size=SECRET_BYTES)


def test_one_looks_as_scanners_and_people_are_told() -> None:
    """What is given out once must stay what it is: whoever changes this makes all of them void."""
    made = make_secret_text(SecretKind.TOKEN, bytes(32))
    assert made == ZEROS
    assert re.fullmatch(r"cr[tj]_[A-Za-z0-9_-]{43}_[0-9a-f]{6}", made)


@given(SECRETS, st.sampled_from(SecretKind))
def test_what_is_kept_is_the_hash_of_its_bytes(random: bytes, kind: SecretKind) -> None:
    made = make_secret_text(kind, random)
    assert (secret_fault(kind, made), is_of_kind(kind, made)) == ("", True)
    assert secret_hash(kind, made) == hashlib.sha256(random).digest()


@given(SECRETS, st.integers(4, 53), st.characters(codec="ascii"))
def test_a_character_that_was_changed_is_found_out_and_not_repeated(random: bytes, at: int, other: str) -> None:
    made = make_secret_text(SecretKind.TOKEN, random)
    if other == made[at]:
        return
    fault = secret_fault(SecretKind.TOKEN, made[:at] + other + made[at + 1 :])
    assert "checksum" in fault
    assert made[4:20] not in fault


@pytest.mark.parametrize(
    "text", ["", "crt_", ZEROS[:-1], ZEROS + "0", ZEROS + "\n", "crj" + ZEROS[3:], "crt_" + "ä" * 50, ZEROS.upper()]
)
def test_what_is_none_is_refused(text: str) -> None:
    assert secret_fault(SecretKind.TOKEN, text)
    with pytest.raises(ValueError, match=r"it does not|it has|checksum"):
        secret_hash(SecretKind.TOKEN, text)


def test_few_bytes_make_none() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        make_secret_text(SecretKind.JOIN, b"few")
