"""Keys of an issuer: when they are fetched, how often, and what goes on while they can't be."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, x25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt import encode
from jwt.algorithms import ECAlgorithm, OKPAlgorithm

from cronring.controller.config import ConfigError
from cronring.controller.errors import IssuerAway
from cronring.controller.identity.fetching import HttpKeyFetching
from cronring.controller.identity.settings import OF_KEYS
from cronring.controller.identity.verifier import JwtVerifier
from cronring.controller.ports.identity import TokenRefused
from tests.support.issuer import TestIssuer, TestKey
from tests.support.waiting import wait_until
from tests.unit.identity.parts import KEY, NOW_S, OTHER, SetClock, by_secret, claims, settings, signed, with_keys

SECRET = b"0123456789abcdef0123456789abcdef"


class Told:
    """A verifier for one small issuer, on a clock that the test sets."""

    def __init__(self, issuer: TestIssuer, timeout_s: float = 60.0, **changes: Any) -> None:
        self.clock = SetClock()
        own = settings(issuer=issuer.url, jwks_url=issuer.jwks_url, **changes)
        self.verifier = JwtVerifier([own], self.clock, HttpKeyFetching(timeout_s))
        self.issuer = issuer
        self._count = 0

    def token(self, **said: Any) -> str:
        """Another one each time: what was checked is remembered."""
        self._count += 1
        return self.issuer.token(now_s=NOW_S, exp=NOW_S + 100_000, jti=str(self._count), **said)

    @property
    def fetches(self) -> int:
        return self.issuer.asked["/keys"]


@pytest.fixture
async def issuer() -> AsyncIterator[TestIssuer]:
    async with TestIssuer() as made:
        yield made


@pytest.fixture
async def told(issuer: TestIssuer) -> AsyncIterator[Told]:
    made = Told(issuer)
    yield made
    await made.verifier.close()


async def test_keys_are_fetched_when_first_needed_and_once(told: Told) -> None:
    assert (told.fetches, told.verifier.ages_s()) == (0, {})
    await asyncio.gather(*(told.verifier.principal(told.token()) for _ in range(20)))
    assert told.fetches == 1
    told.clock.passed_s = 100
    await told.verifier.principal(told.token())
    assert (told.fetches, told.verifier.ages_s()) == (1, {"corp": 100.0})


async def test_after_a_quarter_of_an_hour_they_are_fetched_beside_a_call(told: Told) -> None:
    await told.verifier.principal(told.token())
    told.clock.passed_s = 899
    await told.verifier.principal(told.token())
    assert told.fetches == 1
    told.clock.passed_s = 900
    told.issuer.slow_s = 3_600
    await told.verifier.principal(told.token())  # goes on with the old ones
    await wait_until(lambda: told.fetches == 2, "nothing was fetched beside the call")
    await told.verifier.principal(told.token())
    assert told.fetches == 2


async def test_a_changed_key_is_fetched_once_and_works(told: Told) -> None:
    await told.verifier.principal(told.token())
    old = told.token()
    told.issuer.rotate("second")
    await told.verifier.principal(told.token())
    assert told.fetches == 2
    await told.verifier.principal(told.token())
    assert told.fetches == 2
    with pytest.raises(TokenRefused, match="no key named 'first'"):
        await told.verifier.principal(old)


@pytest.mark.parametrize("cold", [True, False])
async def test_two_hundred_unknown_names_are_one_fetch(told: Told, cold: bool) -> None:
    if not cold:
        await told.verifier.principal(told.token())
    before = told.fetches
    unknown = [OTHER.sign(claims(iss=told.issuer.url), kid=f"unknown-{number}") for number in range(200)]
    found = await asyncio.gather(*(told.verifier.principal(token) for token in unknown), return_exceptions=True)
    assert {type(each) for each in found} == {TokenRefused}
    assert told.fetches == before + 1


async def test_unknown_names_are_a_fetch_each_half_minute(told: Told) -> None:
    await told.verifier.principal(told.token())
    counts = []
    for told.clock.passed_s in (1, 2, 30.9, 31, 40, 60.9, 61):
        with pytest.raises(TokenRefused):
            await told.verifier.principal(OTHER.sign(claims(iss=told.issuer.url), kid="unknown"))
        counts.append(told.fetches)
    assert counts == [2, 2, 2, 3, 3, 3, 4]


async def test_while_the_issuer_is_down_old_keys_go_on(told: Told) -> None:
    await told.verifier.principal(told.token())
    await told.issuer.stop()
    for told.clock.passed_s in (900, 1_000, 90_000):
        await told.verifier.principal(told.token())
        await wait_until(lambda: bool(told.verifier.troubles()), "the issuer is down, and nobody says so")
    assert told.verifier.ages_s() == {"corp": 90_000.0}
    assert "no connection" in told.verifier.troubles()["corp"]
    assert told.issuer.jwks_url in told.verifier.troubles()["corp"]
    await told.issuer.start()
    told.clock.passed_s += 30
    await told.verifier.principal(told.token())
    await wait_until(lambda: not told.verifier.troubles(), "the issuer is up again")
    assert told.verifier.ages_s() == {"corp": 0.0}


async def test_without_any_key_nobody_is_known_until_the_issuer_is_there(told: Told) -> None:
    await told.issuer.stop()
    token = told.token()
    for told.clock.passed_s in (0, 4):
        with pytest.raises(
            IssuerAway, match=r"the keys of issuer 'corp' can't be fetched now from http://.*/keys: no con"
        ):
            await told.verifier.principal(token)
    await told.issuer.start()
    with pytest.raises(IssuerAway):  # not with each call
        await told.verifier.principal(token)
    assert told.fetches == 0
    told.clock.passed_s = 5
    assert (await told.verifier.principal(token)).name == "corp/ada@example.org"


async def test_an_unknown_name_while_the_issuer_is_down_is_not_told_apart(told: Told) -> None:
    await told.verifier.principal(told.token())
    await told.issuer.stop()
    with pytest.raises(IssuerAway):
        await told.verifier.principal(OTHER.sign(claims(iss=told.issuer.url), kid="unknown"))


async def test_who_waits_may_go_away(told: Told) -> None:
    told.issuer.slow_s = 0.2
    first, second = (asyncio.create_task(told.verifier.principal(told.token())) for _ in range(2))
    await wait_until(lambda: told.fetches == 1, "nothing is fetched")
    first.cancel()
    assert (await second).name == "corp/ada@example.org"
    assert told.fetches == 1


async def test_an_issuer_that_does_not_answer_in_time(issuer: TestIssuer) -> None:
    told = Told(issuer, timeout_s=0.05)
    issuer.slow_s = 3_600
    with pytest.raises(IssuerAway, match="no answer within 50ms"):
        await told.verifier.principal(told.token())
    await told.verifier.close()


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (web.Response(status=302, headers={"location": "/elsewhere"}), "HTTP 302: redirects are not followed"),
        (web.Response(status=500), "HTTP 500"),
        (web.Response(body=b"x" * (256 * 1024 + 1)), "more than 262,144 bytes"),
        (web.Response(body=b"<html>"), "it is no set of keys"),
        (web.Response(body=b'{"keys": 1}'), "it is no set of keys"),
        (web.Response(body=b"[" * 100_000), "it is no set of keys"),
        (web.Response(body=b'{"keys": []}'), "none of its 0 keys can check a signature by ES256, EdDSA, RS256"),
        (web.Response(body=json.dumps({"keys": [{}] * 65}).encode()), "it has 65 keys, and 64 are read at most"),
    ],
)
async def test_an_answer_that_holds_no_keys(told: Told, answer: web.Response, says: str) -> None:
    told.issuer.answer = answer
    with pytest.raises(IssuerAway, match=says):
        await told.verifier.principal(told.token())
    assert set(told.issuer.asked) == {"/keys"}
    told.issuer.answer = None
    told.clock.passed_s = 5
    await told.verifier.principal(told.token())
    told.issuer.answer, told.clock.passed_s = answer, 905
    await told.verifier.principal(told.token())
    await wait_until(lambda: says in told.verifier.troubles().get("corp", ""), "nobody says so")
    await told.verifier.principal(told.token())


def entry(**changes: Any) -> dict[str, Any]:
    return KEY.public() | changes


@pytest.mark.parametrize(
    "unfit",
    [
        entry(use="enc"),
        entry(key_ops=["encrypt"]),
        entry(key_ops="verify"),
        entry(alg="RS512"),
        entry(alg=["RS256"]),
        entry(kid=7),
        entry(d="AQAB"),
        entry(n=7),
        entry(n=""),
        entry(e="AQ"),
        entry(kty="oct", k="c2VjcmV0"),
        entry(kty=None),
        TestKey("first", bits=1_024).public(),
        "first",
    ],
    ids=[
        "use",
        "key_ops",
        "key_ops a text",
        "alg",
        "alg a list",
        "kid a number",
        "private",
        "n a number",
        "no n",
        "a short e",
        "a secret",
        "no kty",
        "1,024 bits",
        "a text",
    ],
)
async def test_keys_for_something_else_or_too_weak_are_passed_over(tmp_path: Path, unfit: Any) -> None:
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({"keys": [unfit, OTHER.public()]}))
    verifier = JwtVerifier([settings(jwks_file=file)], SetClock())
    with pytest.raises(TokenRefused):
        await verifier.principal(signed())
    assert await verifier.principal(OTHER.sign(claims()))
    file.write_text(json.dumps({"keys": [unfit]}))
    with pytest.raises(ConfigError, match="none of its 1 keys can check a signature"):
        JwtVerifier([settings(jwks_file=file)], SetClock())


CURVES = [(ec.SECP256R1(), "ES256"), (ec.SECP384R1(), "ES384"), (ec.SECP521R1(), "ES512")]


@pytest.mark.parametrize(("curve", "algorithm"), CURVES, ids=[name for _, name in CURVES])
async def test_keys_of_curves_check_what_their_curve_is_for(
    tmp_path: Path, curve: ec.EllipticCurve, algorithm: str
) -> None:
    key, file = ec.generate_private_key(curve), tmp_path / "keys.json"
    published = json.loads(ECAlgorithm.to_jwk(key.public_key()))
    file.write_text(json.dumps({"keys": [published | {"kid": "curve"}]}))
    verifier = JwtVerifier([settings(jwks_file=file, algorithms=OF_KEYS)], SetClock())
    assert await verifier.principal(encode(claims(), key, algorithm, headers={"kid": "curve"}))
    assert await verifier.principal(encode(claims(), key, algorithm))


async def test_keys_of_edwards_curves_sign_and_those_of_montgomery_do_not(tmp_path: Path) -> None:
    key, file = ed25519.Ed25519PrivateKey.generate(), tmp_path / "keys.json"
    public = x25519.X25519PrivateKey.generate().public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    published = json.loads(OKPAlgorithm.to_jwk(key.public_key()))
    other = published | {"crv": "X25519", "x": public.hex(), "kid": "x"}
    file.write_text(json.dumps({"keys": [other, published | {"kid": "ed"}]}))
    verifier = JwtVerifier([settings(jwks_file=file)], SetClock())
    assert await verifier.principal(encode(claims(), key, "EdDSA"))
    with pytest.raises(TokenRefused, match="no key named 'x'"):
        await verifier.principal(encode(claims(), key, "EdDSA", headers={"kid": "x"}))


async def test_a_token_that_names_no_key_needs_it_to_be_the_only_one(tmp_path: Path) -> None:
    one = JwtVerifier([with_keys(tmp_path)], SetClock())
    unnamed = encode(claims(), KEY.private, "RS256")
    assert await one.principal(unnamed)
    two = JwtVerifier([with_keys(tmp_path, KEY, TestKey("second"))], SetClock())
    assert await two.principal(signed())
    with pytest.raises(TokenRefused, match=r"names no key \(`kid`\), and issuer 'corp' has 2 that it could be"):
        await two.principal(unnamed)


async def test_a_file_of_keys_is_read_again_when_it_has_changed(tmp_path: Path) -> None:
    clock, new = SetClock(), TestKey("new")
    verifier = JwtVerifier([own := with_keys(tmp_path)], clock)
    assert own.jwks_file is not None
    await verifier.principal(signed())
    own.jwks_file.write_text("{")  # half written
    clock.passed_s = 1
    await verifier.principal(signed(jti="1"))
    assert "it is no set of keys" in verifier.troubles()["corp"]
    own.jwks_file.unlink()
    clock.passed_s = 2
    await verifier.principal(signed(jti="2"))
    assert "No such file" in verifier.troubles()["corp"]
    with_keys(tmp_path, new)
    clock.passed_s = 3
    assert await verifier.principal(new.sign(claims()))
    assert (verifier.troubles(), verifier.ages_s()) == ({}, {"corp": 0.0})
    with pytest.raises(TokenRefused, match="no key named 'first'"):
        await verifier.principal(signed(jti="3"))


async def test_the_old_contract_is_a_secret_that_both_know(tmp_path: Path) -> None:
    """HS256, with neither issuer nor audience."""
    file = tmp_path / "secret"
    file.write_bytes(SECRET + b"\n")
    clock = SetClock()
    verifier = JwtVerifier([settings(name="rest", issuer="", audience="", secret_file=file)], clock)
    said = claims(iss=None, aud=None)
    assert (await verifier.principal(by_secret(SECRET, said))).name == "rest/ada"
    assert await verifier.principal(by_secret(SECRET, said, kid="any"))
    for wrong, says in (
        (by_secret(b"x" * 32, said), "its signature is wrong"),
        (by_secret(SECRET, said, "HS512"), "it is signed by 'HS512'; of issuer 'rest' only HS256 count"),
        (by_secret(SECRET, claims(iss=None)), "it has an `aud`, and no audience is configured for issuer 'rest'"),
        (
            by_secret(SECRET, claims(aud=None)),
            "its `iss` is 'https://id.example.org'; issuers of this controller: none",
        ),
        (KEY.sign(said), "it is signed by 'RS256'"),
    ):
        with pytest.raises(TokenRefused, match=says):
            await verifier.principal(wrong)
    file.write_bytes(b"y" * 40)
    os.utime(file, (1, 1))
    clock.passed_s = 1
    assert await verifier.principal(by_secret(b"y" * 40, said))


async def test_each_issuer_has_its_own_keys_and_rules(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(SECRET)
    both = [
        with_keys(tmp_path),
        settings(name="ci", issuer="https://ci.example.org", secret_file=tmp_path / "secret", grants=()),
    ]
    verifier = JwtVerifier(both, SetClock())
    assert (await verifier.principal(signed())).grants
    found = await verifier.principal(by_secret(SECRET, claims(iss="https://ci.example.org")))
    assert (found.name, found.grants) == ("ci/ada", ())
    with pytest.raises(TokenRefused, match="it is signed by 'HS256'"):
        await verifier.principal(by_secret(SECRET, claims()))
    with pytest.raises(TokenRefused, match="it is signed by 'RS256'"):
        await verifier.principal(signed(iss="https://ci.example.org"))
