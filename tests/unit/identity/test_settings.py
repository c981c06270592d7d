"""The identity file: what it says, what is refused in which words, and who is given what by it."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cronring.controller.config import ConfigError, ProcessConfig
from cronring.controller.identity.claims import principal_of
from cronring.controller.identity.login import Logins
from cronring.controller.identity.reading import read_identity
from cronring.controller.identity.settings import ANYBODY, GrantRule, IssuerSettings, LoginSettings
from cronring.controller.identity.verifier import JwtVerifier
from cronring.controller.web import issuers_of
from cronring.schema.identity import Role, RoleGrant
from tests.unit.identity.parts import ISSUER, NOW_S, SetClock, claims, settings

GOOD = """
[[issuer]]
name = "corp"
issuer = "https://id.example.org"
audience = "cronring"
jwks_url = "https://id.example.org/keys"
"""
GRANT = '[[issuer.grant]]\nclaim = "groups"\nvalue = "sre"\nrole = "operator"\nnamespace = "billing"\n'


def read(folder: Path, text: str) -> tuple[IssuerSettings, ...]:
    file = folder / "identity.toml"
    file.write_text(text)
    return read_identity(file)


def test_a_whole_file_is_read(tmp_path: Path) -> None:
    first, second = read(
        tmp_path,
        f'{GOOD}algorithms = ["ES256", "RS512"]\nleeway = "1m"\nname_claim = "email"\n{GRANT}'
        '[[issuer.grant]]\nvalue = "*"\nrole = "viewer"\nnamespace = "*"\n'
        '[issuer.login]\nclient_id = "cli"\nscopes = ["openid", "groups"]\nclient_secret_file = "c"\n'
        '[[issuer]]\nname = "rest"\nsecret_file = "secret"\nleeway = "0s"\n',
    )
    assert first == IssuerSettings(
        name="corp", issuer=ISSUER, audience="cronring", jwks_url=f"{ISSUER}/keys", algorithms=("ES256", "RS512"),
        leeway_ms=60_000, name_claim="email",
        grants=(GrantRule("sre", Role.OPERATOR, "billing", "groups"), GrantRule(ANYBODY, Role.VIEWER, "*")),
        login=LoginSettings("cli", ("openid", "groups"), tmp_path / "c"),
    )  # fmt: skip
    assert second == IssuerSettings(name="rest", secret_file=tmp_path / "secret", leeway_ms=0)
    assert (second.allowed, read(tmp_path, GOOD)[0].allowed) == (("HS256",), ("RS256", "ES256", "EdDSA"))


OF_SOURCES = "there must be exactly one of jwks_url, jwks_file and secret_file"
WRONG = {
    "no TOML": ("[[issuer", "is no TOML: "),
    "nothing": ("", "issuer is missing; there must be one [[issuer]] or more"),
    "one table": ('[issuer]\nname = "a"', "issuer is {'name': 'a'}; it must be a list of tables: [[issuer]]"),
    "no table": ('issuer = ["corp"]', "issuer[0] is 'corp'; it must be a table"),
    "another table": (f'{GOOD}[server]\nport = 1', "server is no key that there is; there are issuer"),
    "misspelt": (f'{GOOD}audiences = "x"', "issuer[0].audiences is no key that there is; did you mean 'audience'?"),
    "no name": (GOOD.replace('"corp"', '""'), "issuer[0].name is ''; it may have a to z, digits and '-'"),
    "a name with a slash": (GOOD.replace('"corp"', '"a/b"'), "issuer[0].name is 'a/b'; it may have"),
    "a number": (GOOD.replace('"cronring"', "7"), 'issuer[0].audience is 7; it must be a text, as "this"'),
    "no issuer": (GOOD.replace('"https://id.example.org"', '""'), "issuer[0].issuer is missing or empty; it must be"),
    "no audience": (GOOD.replace('"cronring"', '" "'), "issuer[0].audience is missing or empty; it must be a text"),
    "long": (GOOD.replace('"cronring"', f'"{"a" * 501}"'), "issuer[0].audience has 501 characters; it must have 500"),
    "http": (
        GOOD.replace('url = "https', 'url = "http'),
        "issuer[0].jwks_url is 'http://id.example.org/keys'; it must be https://HOST/PATH without a password (http://"
        " only for this machine)",
    ),
    "a password": (
        GOOD.replace('url = "https://', 'url = "https://ada:pw@'), "jwks_url is 'https://…@id.example.org/keys'; it",
    ),
    "a name like loopback": (GOOD.replace('url = "https://id', 'url = "http://127.0.0.1.id'), "jwks_url is 'http://127"),
    "another scheme": (GOOD.replace('url = "https', 'url = "file'), "jwks_url is 'file://id"),
    "two sources": (f'{GOOD}jwks_file = "k"', f"issuer[0].jwks_url and jwks_file are both given; {OF_SOURCES}"),
    "no source": (GOOD.replace("jwks_url", "jwks_file").replace('"https://id.example.org/keys"', '""'), OF_SOURCES),
    "HS256 beside keys": (
        f'{GOOD}algorithms = ["RS256", "HS256"]',
        "issuer[0].algorithms has 'HS256' beside public keys: anybody could sign with those; it must be among RS256, ",
    ),
    "keys beside a secret": (
        '[[issuer]]\nname = "a"\nsecret_file = "s"\nalgorithms = ["RS256"]',
        "issuer[0].algorithms has 'RS256'; each must be one of HS256",
    ),
    "alg none": (f'{GOOD}algorithms = ["none"]', "issuer[0].algorithms has 'none'; each must be one of RS256, "),
    "an alg alone": (f'{GOOD}algorithms = "RS256"', "algorithms is 'RS256'; it must be a list of texts, as [\"this\"]"),
    "no algs": (f"{GOOD}algorithms = []", "issuer[0].algorithms is []; it must be a list of one text or more"),
    "a leeway that is none": (f'{GOOD}leeway = "30"', "issuer[0].leeway is '30'; a unit is missing"),
    "a large leeway": (f'{GOOD}leeway = "6m"', "issuer[0].leeway is out of range; it must be from 0s to 5m"),
    "no claim": (GOOD + GRANT.replace('"groups"', '""'), "issuer[0].grant[0].claim is missing or empty; it must be"),
    "no value": (GOOD + GRANT.replace('"sre"', '""'), "issuer[0].grant[0].value is missing or empty; it must be a"),
    "whoever with a claim": (
        GOOD + GRANT.replace('"sre"', '"*"'),
        "issuer[0].grant[0].claim is 'groups' and value is '*', which is whoever has a valid token; leave claim out",
    ),
    "no role": (GOOD + GRANT.replace('role = "operator"', ""), "grant[0].role is missing; it must be one of viewer, "),
    "another role": (
        GOOD + GRANT + GRANT.replace("operator", "boss"), "grant[1].role is 'boss'; it must be one of viewer, ",
    ),
    "no namespace": (GOOD + GRANT.replace('"billing"', '""'), "issuer[0].grant[0].namespace is empty; it must be the"),
    "a pattern": (GOOD + GRANT.replace("billing", "bill*"), "grant[0].namespace 'bill*' is no namespace: letters"),
    "no client": (f"{GOOD}[issuer.login]", "issuer[0].login.client_id is missing or empty; it must be a text"),
    "two words": (
        f'{GOOD}[issuer.login]\nclient_id = "a"\nscopes = ["a b"]', ".login.scopes has 'a b'; each must be one",
    ),
    "no openid": (
        f'{GOOD}[issuer.login]\nclient_id = "a"\nscopes = ["email"]', ".login.scopes lacks 'openid', without which",
    ),
    "a login by a secret": (
        '[[issuer]]\nname = "rest"\nsecret_file = "x"\n[issuer.login]\nclient_id = "a"',
        "issuer[0].login stands beside secret_file; who only shares a secret has no pages",
    ),
    "a login in plaintext": (
        GOOD.replace(f'issuer = "{ISSUER}"', 'issuer = "http://me:pw@id.example.org"')
        + '[issuer.login]\nclient_id = "a"',
        "issuer[0].issuer is 'http://…@id.example.org'; with a login it must be https://HOST/PATH",
    ),
    "a name twice": (GOOD + GOOD, "issuer[1].name is 'corp', as issuer[0]'s; it must be its own"),
    "an issuer twice": (
        GOOD + GOOD.replace("corp", "other"), f"issuer[1].issuer is '{ISSUER}', as issuer[0]'s; it must be its own",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_named_and_what_would_be_right(case: str, tmp_path: Path) -> None:
    text, says = WRONG[case]
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, text)
    assert says in str(refused.value)
    assert "identity.toml" in str(refused.value)


def test_a_file_that_is_not_there_or_too_large(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing\.toml can't be read: No such file"):
        read_identity(tmp_path / "nothing.toml")
    with pytest.raises(ConfigError, match="is too large; it must be TOML of 1 MiB at most"):
        read(tmp_path, "#" * (1024 * 1024 + 1))


@pytest.mark.parametrize(
    ("secret", "says"),
    [
        (b"short", "it has 5 bytes, which can be guessed; a secret must have 32"),
        (b" " * 40, "it has 0 bytes"),
        (b"x" * 5_000, "it has 5,000 bytes; a secret must have 4,096 at most"),
        (b"-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQ\n-----END PUBLIC KEY-----", "it is a key of a pair"),
        (None, "No such file"),
    ],
)
def test_a_secret_that_is_none_stops_a_controller(secret: bytes | None, says: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    if secret is not None:
        file.write_bytes(secret)
    with pytest.raises(ConfigError, match=f"secret, of issuer 'corp', can't be used: {says}"):
        JwtVerifier([settings(secret_file=file)], SetClock())


@pytest.mark.parametrize(
    ("secret", "says"),
    [(None, "No such file"), (b"", "is no line of 1 to 4,096"), (b"a\nb", "is no line"), (b"\xff", "more than ASCII")],
)
def test_a_secret_of_a_client_that_is_none_stops_a_controller(secret: bytes | None, says: str, tmp_path: Path) -> None:
    file = tmp_path / "client"
    if secret is not None:
        file.write_bytes(secret)
    issuer, clock = settings(login=LoginSettings("cli", secret_file=file)), SetClock()
    with pytest.raises(ConfigError, match=f"client, of issuer 'corp', .*{says}"):
        Logins((issuer,), JwtVerifier([issuer], clock), clock)


def test_who_logs_in_at_an_issuer_must_be_sent_back_to_somewhere(tmp_path: Path) -> None:
    file = tmp_path / "identity.toml"
    file.write_text(f'{GOOD}[issuer.login]\nclient_id = "a"')
    config = ProcessConfig("postgresql://x", certs=tmp_path, identity_file=file)
    with pytest.raises(
        ConfigError, match=r"^public_url is not set, and .*identity\.toml lets people log in by issuer 'corp'"
    ):
        issuers_of(config)
    for fine in (replace(config, public_url="https://c1"), replace(config, certs=None, insecure=True)):
        logins = issuers_of(fine)[1]
        assert logins is not None
        assert [each.name for each in logins.issuers] == ["corp"]


def test_the_examples_of_the_docs_are_right(tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "identity.md").read_text()
    examples = re.findall(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    found = [issuer for example in examples for issuer in read(tmp_path, example)]
    assert [issuer.name for issuer in found] == ["corp", "rest", "cloud", "company"]
    assert all(issuer.grants for issuer in found)


BOTH = (RoleGrant(Role.OPERATOR, "billing"), RoleGrant(Role.VIEWER, "*"))


@pytest.mark.parametrize(
    ("claim", "said", "granted"),
    [
        ("groups", {"groups": ["dev", "sre"]}, True),
        ("groups", {"groups": "sre"}, True),
        ("groups", {"groups": "sre dev"}, False),
        ("groups", {"groups": ["SRE", "sre2", "*", ["sre"], None, 1]}, False),
        ("groups", {"groups": {"sre": True}}, False),
        ("groups", {"groups": None}, False),
        ("groups", {}, False),
        ("realm_access.roles", {"realm_access": {"roles": ["sre"]}}, True),
        ("realm_access.roles", {"realm_access": ["sre"]}, False),
        ("a.b.c.d", {"a": {"b": {"c": {"d": "sre"}}}}, True),
        ("https://cronring.example/roles", {"https://cronring.example/roles": ["sre"]}, True),
        ("resource_access.cronring.cli.roles", {"resource_access": {"cronring.cli": {"roles": ["sre"]}}}, True),
        ("a.b", {"a.b": "dev", "a": {"b": "sre"}}, False),
        ("email", {"email": "sre"}, True),
        ("email", {"email": "sre", "email_verified": True}, True),
        ("email", {"email": "sre", "email_verified": False}, False),
        ("email", {"email": "sre", "email_verified": "false"}, False),
    ],
)
def test_who_is_given_what(claim: str, said: dict[str, Any], granted: bool) -> None:
    rules = (
        GrantRule("sre", Role.OPERATOR, "billing", claim),
        GrantRule("sre", Role.OPERATOR, "billing", claim),
        GrantRule(ANYBODY, Role.VIEWER, "*"),
    )
    found = principal_of(claims(groups=None) | said, settings(grants=rules), NOW_S * 1_000_000)
    assert found.grants == (BOTH if granted else BOTH[1:])


def test_whoever_has_no_group_may_nothing() -> None:
    found = principal_of(claims(groups=["guests"]), settings(), NOW_S * 1_000_000)
    assert (found.name, found.grants) == ("corp/ada", ())
