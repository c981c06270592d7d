"""Tokens that prove nothing, and what their holders are told."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st
from jwt import PyJWS

from cronring.controller.identity.verifier import JwtVerifier
from cronring.controller.ports.identity import TokenRefused
from cronring.schema.identity import Kind, Principal, Role, RoleGrant
from tests.support.issuer import TestIssuer
from tests.unit.identity.parts import (
    ISSUER,
    KEY,
    NOW_S,
    OTHER,
    SetClock,
    by_secret,
    claims,
    encoded,
    raw_token,
    settings,
    signed,
    with_keys,
)

CLOCK = "by this controller's clock"
PEM = KEY.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
UNKNOWN = "issuer 'corp' has no key named {} for its algorithm, among 1"
NO_NUMBER = "its `exp` is no number: it must be in seconds since 1970"
NO_INSTANT = "its `exp` is no instant: it must be in seconds since 1970, until the year 9999"
WRONG = "its signature is wrong: it isn't by the key of issuer 'corp' that it names, or was changed"
ONLY = "of issuer 'corp' only RS256, ES256, EdDSA count"
CUT = "can't be decoded from base64url; is it cut short?"
NO_KID = "the `kid` in its header is no text of 1 to 200 characters"
RS = {"alg": "RS256", "kid": "first"}
HEAD, BODY, SIGNATURE = signed().split(".")


def changed(part: str) -> str:
    """Of a token that was signed for somebody else."""
    return f"{HEAD}.{encoded(json.dumps(claims(sub='eve')).encode())}.{SIGNATURE}" if part == "body" else ""


BAD: dict[str, tuple[Callable[[], str], str]] = {
    "alg none": (lambda: raw_token({"alg": "none"}, claims(), b""), f"it is signed by 'none'; {ONLY}"),
    "alg None": (lambda: raw_token({"alg": "NONE"}, claims(), b""), f"it is signed by 'NONE'; {ONLY}"),
    "alg missing": (lambda: raw_token({}, claims()), "its header has no `alg` that is a text"),
    "alg a list": (lambda: raw_token({"alg": ["RS256"]}, claims()), "its header has no `alg` that is a text"),
    "alg not configured": (lambda: raw_token(RS | {"alg": "RS512"}, claims()), f"it is signed by 'RS512'; {ONLY}"),
    "the public key as a secret": (
        lambda: by_secret(PEM, claims(), kid="first"), f"it is signed by 'HS256'; {ONLY}",
    ),
    "another alg than the key's": (
        lambda: raw_token(RS | {"alg": "ES256"}, claims()), UNKNOWN.format("'first'"),
    ),
    "another key of that name": (lambda: OTHER.sign(claims()), WRONG),
    "changed after it was signed": (lambda: changed("body"), WRONG),
    "no signature": (lambda: f"{HEAD}.{BODY}.", WRONG),
    "aud of others": (lambda: signed(aud="other"), "it is for 'other' (its `aud`), and not for 'cronring'"),
    "aud a list of others": (
        lambda: signed(aud=["a", "b"]), "it is for ['a', 'b'] (its `aud`), and not for 'cronring'",
    ),
    "aud a beginning": (lambda: signed(aud="cronring2"), "it is for 'cronring2' (its `aud`), and not for 'cronring'"),
    "aud missing": (lambda: signed(aud=None), "it has no `aud`; that must be 'cronring'"),
    "aud a number": (lambda: KEY.sign(claims() | {"aud": 1}), "its `aud` is neither a text nor a list of texts"),
    "iss of others": (
        lambda: signed(iss="https://evil.example"),
        f"its `iss` is 'https://evil.example'; issuers of this controller: '{ISSUER}'",
    ),
    "iss with a slash": (
        lambda: signed(iss=f"{ISSUER}/"), f"its `iss` is '{ISSUER}/'; issuers of this controller: '{ISSUER}'",
    ),
    "iss missing": (
        lambda: signed(iss=None), f"its `iss` is missing or no text; issuers of this controller: '{ISSUER}'",
    ),
    "iss a list": (
        lambda: raw_token(RS, claims() | {"iss": [ISSUER]}),
        f"its `iss` is missing or no text; issuers of this controller: '{ISSUER}'",
    ),
    "expired": (
        lambda: signed(exp=NOW_S - 300), f"it expired 5m ago {CLOCK} (at 2027-01-15 07:55:00Z; leeway: 30s)",
    ),
    "not yet valid": (
        lambda: signed(nbf=NOW_S + 90),
        f"it is not valid yet: it will be in 1m30s {CLOCK} (at 2027-01-15 08:01:30Z; leeway: 30s)",
    ),
    "issued later": (
        lambda: signed(iat=NOW_S + 90),
        f"it says that it is issued in 1m30s {CLOCK} (at 2027-01-15 08:01:30Z; leeway: 30s)",
    ),
    "exp missing": (lambda: signed(exp=None), "it has no `exp`: a token that never expires is not taken"),
    "exp a text": (lambda: _signed_raw({"exp": str(NOW_S + 60)}), NO_NUMBER),
    "exp a bool": (lambda: _signed_raw({"exp": True}), NO_NUMBER),
    "exp a list": (lambda: _signed_raw({"exp": [NOW_S]}), NO_NUMBER),
    "exp huge": (lambda: _signed_raw({"exp": 10**400}), NO_INSTANT),
    "exp endless": (lambda: _signed_text('{"exp": 1e999,' + json.dumps(claims(exp=None))[1:]), NO_INSTANT),
    "exp NaN": (lambda: _signed_text('{"exp": NaN}'), "its claims can't be read as JSON"),
    "exp below zero": (lambda: _signed_raw({"exp": -1}), NO_INSTANT),
    "nbf a text": (
        lambda: _signed_raw({"nbf": "now"}), "its `nbf` is no number: it must be in seconds since 1970",
    ),
    "kid unknown": (lambda: KEY.sign(claims(), kid="second"), UNKNOWN.format("'second'")),
    "kid a path": (lambda: KEY.sign(claims(), kid="../../../dev/null"), UNKNOWN.format("'../../../dev/null'")),
    "kid SQL": (
        lambda: KEY.sign(claims(), kid="' UNION SELECT 'k"), UNKNOWN.format('"\' UNION SELECT \'k"'),
    ),
    "kid a number": (lambda: raw_token({"alg": "RS256", "kid": 1}, claims()), NO_KID),
    "kid a table": (lambda: raw_token({"alg": "RS256", "kid": {"a": 1}}, claims()), NO_KID),
    "kid empty": (lambda: raw_token({"alg": "RS256", "kid": ""}, claims()), NO_KID),
    "kid long": (lambda: raw_token({"alg": "RS256", "kid": "k" * 201}, claims()), NO_KID),
    "a claim twice": (
        lambda: _signed_text('{"aud": "cronring", "aud": "other"}'), "there is 'aud' twice in its claims",
    ),
    "an inner claim twice": (lambda: _signed_text('{"a": {"b": 1, "b": 2}}'), "there is 'b' twice in its claims"),
    "alg twice": (lambda: raw_token('{"alg": "none", "alg": "RS256"}', claims()), "there is 'alg' twice in its header"),
    "17 KiB": (lambda: signed(pad="x" * 12_900), "it has 17,"),
    "cut": (lambda: f"{HEAD}.{BODY}.{SIGNATURE[:-1]}", f"its signature {CUT}"),
    "cut in its claims": (lambda: f"{HEAD}.{BODY[:-1]}.{SIGNATURE}", "its claims "),
    "other bits at the end": (lambda: f"{HEAD}.{BODY}.{SIGNATURE[:-1]}{_next(SIGNATURE[-1])}", f"its signature {CUT}"),
    "crit": (
        lambda: KEY.sign(claims(), crit=["exp"]),
        "its header has `crit`, and this controller knows no extension that a token may insist on",
    ),
    "two parts": (lambda: f"{HEAD}.{BODY}", "it is no JWT: that has three parts in base64url, with dots between"),
    "no JSON": (lambda: raw_token("{", claims()), "its header can't be read as JSON"),
    "a deep header": (lambda: raw_token("[" * 10_000, claims()), "its header can't be read as JSON"),
    "a list": (lambda: raw_token(RS, [1]), "its claims can't be read: it is no object of JSON"),
    "no UTF-8": (lambda: f"{HEAD}.{encoded(bytes([255, 254]))}.{SIGNATURE}", "its claims can't be read as JSON"),
    "sub missing": (lambda: signed(sub=None), "its `sub` is missing or no text, and it is who its holder is"),
    "sub a number": (lambda: _signed_raw({"sub": 7}), "its `sub` is missing or no text, and it is who its holder is"),
    "sub with escapes": (
        lambda: signed(sub="a\x1b[31m"), "its `sub` has letters that can't be shown, and it is who its holder is",
    ),
    "sub half a pair": (
        lambda: _signed_text(json.dumps(claims(sub="\ud800"))),
        "its `sub` has letters that can't be shown, and it is who its holder is",
    ),
    "sub long": (lambda: signed(sub="a" * 196), "its `sub` is too long: with the issuer's name 201 characters"),
}  # fmt: skip


def _signed_raw(more: dict[str, Any]) -> str:
    """Libraries refuse to sign some of these."""
    return _signed_text(json.dumps(claims() | more))


def _signed_text(text: str) -> str:
    return PyJWS().encode(text.encode(), KEY.private, "RS256", headers={"kid": "first"})


def _next(letter: str) -> str:
    """The last letter of a signature by RSA has bits that say nothing."""
    return chr(ord(letter) + 1)


@pytest.mark.parametrize("case", BAD)
async def test_a_bad_token_is_refused_and_told_why(case: str, tmp_path: Path) -> None:
    make, says = BAD[case]
    verifier = JwtVerifier([with_keys(tmp_path)], SetClock())
    token = make()
    with pytest.raises(TokenRefused) as refused:
        await verifier.principal(token)
    prefix, _, said = str(refused.value).partition(": ")
    assert prefix == "this token is refused"
    assert said == says or (says.endswith((",", " ")) and said.startswith(says))
    assert len(said) < 400
    assert not any(part in said for part in token.split(".") if len(part) > 20), "the token is told to nobody"


async def test_a_good_token_is_its_holder(tmp_path: Path) -> None:
    verifier = JwtVerifier([with_keys(tmp_path)], SetClock())
    token = signed(aud=["account", "cronring"], nbf=NOW_S, exp=NOW_S + 60.5)
    assert verifier.knows(token)
    expected = Principal(Kind.USER, "corp/ada", (RoleGrant(Role.OPERATOR, "*"),), (NOW_S + 60) * 1_000_000 + 500_000)
    assert await verifier.principal(token) == expected
    assert await verifier.principal(token) == expected


async def test_what_a_header_says_of_keys_is_not_looked_at(tmp_path: Path) -> None:
    verifier = JwtVerifier([with_keys(tmp_path)], SetClock())
    async with TestIssuer() as attacker:
        theirs = attacker.keys[0]
        pointing = {"jku": attacker.jwks_url, "x5u": attacker.jwks_url, "jwk": theirs.public(), "x5c": ["AAAA"]}
        for kid in ("first", "second"):
            with pytest.raises(TokenRefused):
                await verifier.principal(theirs.sign(claims(), **pointing | {"kid": kid}))
        assert (await verifier.principal(KEY.sign(claims(), **pointing))).name == "corp/ada"
        assert not attacker.asked


@pytest.mark.parametrize(
    ("claim", "value", "at_s", "good"),
    [
        ("exp", NOW_S, NOW_S + 29, True),
        ("exp", NOW_S, NOW_S + 30, False),
        ("exp", NOW_S, NOW_S + 31, False),
        ("nbf", NOW_S, NOW_S - 31, False),
        ("nbf", NOW_S, NOW_S - 30, True),
        ("nbf", NOW_S, NOW_S - 29, True),
        ("iat", NOW_S, NOW_S - 31, False),
        ("iat", NOW_S, NOW_S - 30, True),
    ],
)
async def test_clocks_may_differ_by_the_leeway(claim: str, value: int, at_s: int, good: bool, tmp_path: Path) -> None:
    verifier = JwtVerifier([with_keys(tmp_path)], SetClock(at_s))
    said = {"exp": NOW_S + 600, "iat": None} | {claim: value}
    if good:
        assert (await verifier.principal(signed(**said))).name == "corp/ada"
    else:
        with pytest.raises(TokenRefused, match=CLOCK):
            await verifier.principal(signed(**said))


async def test_a_token_that_was_checked_ends_when_it_expires(tmp_path: Path) -> None:
    clock = SetClock()
    verifier = JwtVerifier([with_keys(tmp_path, leeway_ms=0)], clock)
    token = signed(exp=NOW_S + 10)
    await verifier.principal(token)
    clock.passed_s = 9.9
    await verifier.principal(token)
    clock.passed_s = 10
    with pytest.raises(TokenRefused, match="it expired 0ms ago"):
        await verifier.principal(token)


async def test_a_token_that_was_checked_is_checked_again_after_a_minute(tmp_path: Path) -> None:
    clock = SetClock()
    own = with_keys(tmp_path)
    verifier = JwtVerifier([own], clock)
    token = signed(exp=NOW_S + 600)
    await verifier.principal(token)
    assert own.jwks_file is not None
    own.jwks_file.write_text(json.dumps({"keys": [OTHER.public()]}))
    clock.passed_s = 59
    await verifier.principal(token)
    clock.passed_s = 60
    with pytest.raises(TokenRefused, match="its signature is wrong"):
        await verifier.principal(token)


async def test_no_more_tokens_are_remembered_than_there_is_room_for(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"s" * 32)
    verifier = JwtVerifier([settings(secret_file=secret)], SetClock())
    for number in range(1_100):
        await verifier.principal(by_secret(b"s" * 32, claims(jti=str(number))))
    assert len(verifier._known) == 1_024


TOKENS = st.one_of(
    st.text(),
    st.text(alphabet="abcABC019-_.=", max_size=200),
    st.builds(
        raw_token,
        st.one_of(st.text(), st.dictionaries(st.sampled_from(["alg", "kid", "crit", "typ"]), st.one_of(
            st.none(), st.booleans(), st.integers(), st.floats(), st.text(),
            st.sampled_from(["RS256", "first", "none"]),
        ))),
        st.one_of(st.text(), st.dictionaries(st.sampled_from(["iss", "aud", "exp", "sub"]), st.one_of(
            st.none(), st.integers(), st.floats(), st.lists(st.text()),
            st.sampled_from([ISSUER, "cronring", NOW_S + 60]),
        ))),
        st.binary(),
    ),
)  # fmt: skip


def test_whatever_is_given_for_a_token_is_refused_and_nothing_else(tmp_path: Path) -> None:
    verifier = JwtVerifier([with_keys(tmp_path)], SetClock())

    @given(TOKENS)
    def check(token: str) -> None:
        verifier.knows(token)
        with pytest.raises(TokenRefused):
            asyncio.run(verifier.principal(token))

    check()
