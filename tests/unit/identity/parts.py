"""What tests of tokens share: a clock that they set, settings, and tokens that are wrong in one way."""

import base64
import hashlib
import hmac
import json
from pathlib import Path
from typing import Any, Final

from cronring.controller.identity.settings import GrantRule, IssuerSettings
from cronring.schema.identity import Role
from tests.support.issuer import AUDIENCE, TestKey

NOW_S: Final = 1_800_000_000
ISSUER: Final = "https://id.example.org"
SRE: Final = GrantRule("sre", Role.OPERATOR, "*", "groups")
KEY: Final = TestKey("first")
OTHER: Final = TestKey("first")  # of the same name


class SetClock:
    """controller.ports.clock.Clock that stands still."""

    def __init__(self, now_s: float = NOW_S) -> None:
        self.now_s = now_s
        self.passed_s = 0.0

    def now_ns(self) -> int:
        return int(self.passed_s * 1e9)

    def wall_us(self) -> int:
        return int((self.now_s + self.passed_s) * 1e6)


def settings(**changes: Any) -> IssuerSettings:
    made: dict[str, Any] = {"name": "corp", "issuer": ISSUER, "audience": AUDIENCE, "grants": (SRE,)}
    if not changes.keys() & {"jwks_url", "jwks_file", "secret_file"}:
        made["jwks_url"] = f"{ISSUER}/keys"
    return IssuerSettings(**(made | changes))


def with_keys(folder: Path, *keys: TestKey, **changes: Any) -> IssuerSettings:
    file = folder / "keys.json"
    file.write_text(json.dumps({"keys": [key.public() for key in keys or (KEY,)]}))
    return settings(jwks_file=file, **changes)


def claims(**changes: Any) -> dict[str, Any]:
    """Those of a good token; a change to None takes one away."""
    said = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "iat": NOW_S, "exp": NOW_S + 60, "groups": ["sre"]} | changes
    return {name: value for name, value in said.items() if value is not None}


def signed(**changes: Any) -> str:
    return KEY.sign(claims(**changes))


def encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def raw_token(header: object, body: object, signature: bytes = b"signature") -> str:
    """A token as nobody's library would write it. Texts stand as they are."""
    parts = [part if isinstance(part, str) else json.dumps(part) for part in (header, body)]
    return ".".join([*(encoded(part.encode("utf-8", "surrogatepass")) for part in parts), encoded(signature)])


def by_secret(secret: bytes, said: dict[str, Any], algorithm: str = "HS256", **header: Any) -> str:
    token = raw_token({"alg": algorithm, "typ": "JWT"} | header, said).rpartition(".")[0]
    return f"{token}.{encoded(hmac.new(secret, token.encode(), hashlib.sha256).digest())}"
