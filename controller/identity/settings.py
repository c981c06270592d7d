"""What an operator says of those who sign JWTs. Frozen, and checked when made: what is wrong stops a controller.

Each message begins with the key that it is about. Where in the file that is, reading.py says.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from cronring.controller.config import ConfigError
from cronring.controller.identity.addresses import is_safe
from cronring.schema.identity import EVERYWHERE, Role
from cronring.schema.validate import namespace_fault

OF_SECRETS: Final = ("HS256",)
OF_KEYS: Final = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
)  # fmt: skip
DEFAULT_OF_KEYS: Final = ("RS256", "ES256", "EdDSA")
DEFAULT_LEEWAY_MS: Final = 30_000
LEEWAY_MS_MAX: Final = 300_000
TEXT_LENGTH_MAX: Final = 500
ANYBODY: Final = "*"  # in place of a claim's value: whoever has a valid token
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,30}", re.ASCII)


@dataclass(frozen=True, slots=True)
class GrantRule:
    """Who has `value` in `claim` (a dotted path) has that role there."""

    value: str
    role: Role
    namespace: str
    claim: str = ""

    def __post_init__(self) -> None:
        _require_text("value", self.value)
        if self.value == ANYBODY and self.claim:
            raise ConfigError(
                f"claim is {self.claim!r} and value is '*', which is whoever has a valid token; leave claim out, or"
                " give a value that the claim has to have"
            )
        if self.value != ANYBODY:
            _require_text("claim", self.claim)
        fault = namespace_fault(self.namespace)
        if self.namespace != EVERYWHERE and fault:
            raise ConfigError(f"namespace {fault}; it must be the name of a namespace, or '*' for all of them")


@dataclass(frozen=True, slots=True)
class LoginSettings:
    """How people log in by a browser at this issuer. `secret_file` None: this client has no secret."""

    client_id: str
    scopes: tuple[str, ...] = ("openid",)
    secret_file: Path | None = None

    def __post_init__(self) -> None:
        _require_text("client_id", self.client_id)
        for scope in self.scopes:
            if not scope or not all("!" <= letter <= "~" for letter in scope):
                raise ConfigError(f"scopes has {scope!r}; each must be one word, as 'openid'")
        if "openid" not in self.scopes:
            raise ConfigError("scopes lacks 'openid', without which an issuer doesn't say who somebody is")


@dataclass(frozen=True, slots=True)
class IssuerSettings:
    """Somebody who signs tokens. Exactly one of `jwks_url`, `jwks_file` and `secret_file` says how they are checked."""

    name: str
    issuer: str = ""
    audience: str = ""
    jwks_url: str = ""
    jwks_file: Path | None = None
    secret_file: Path | None = None
    algorithms: tuple[str, ...] = ()
    leeway_ms: int = DEFAULT_LEEWAY_MS
    name_claim: str = "sub"
    grants: tuple[GrantRule, ...] = ()
    login: LoginSettings | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ConfigError(
                f"name is {self.name!r:.100}; it may have a to z, digits and '-', 31 at most, and no '-' first"
            )
        self._check_source()
        self._check_algorithms()
        # Whoever has a secret signs for nobody else: a token of it needn't say whose it is. Keys sign for many.
        if not (self.secret_file and not self.issuer):
            _require_text("issuer", self.issuer)
        if not (self.secret_file and not self.audience):
            _require_text("audience", self.audience)
        _require_text("name_claim", self.name_claim)
        if not 0 <= self.leeway_ms <= LEEWAY_MS_MAX:
            raise ConfigError("leeway is out of range; it must be from 0s to 5m")
        self._check_login()

    @property
    def allowed(self) -> tuple[str, ...]:
        """The algorithms by which its tokens may be signed."""
        return self.algorithms or (OF_SECRETS if self.secret_file else DEFAULT_OF_KEYS)

    def _check_source(self) -> None:
        sources = {"jwks_url": self.jwks_url, "jwks_file": self.jwks_file, "secret_file": self.secret_file}
        given = [key for key, value in sources.items() if value]
        if len(given) != 1:
            seen = f"{' and '.join(given)} are both given" if given else "jwks_url is missing"
            raise ConfigError(f"{seen}; there must be exactly one of jwks_url, jwks_file and secret_file")
        if self.jwks_url and not is_safe(self.jwks_url):
            raise ConfigError(
                f"jwks_url is {_without_password(self.jwks_url)!r:.200}; it must be https://HOST/PATH without a"
                " password (http:// only for this machine)"
            )

    def _check_login(self) -> None:
        """Whoever is logged in by it comes by its own pages, and is named by what its public keys have signed."""
        if self.login is None:
            return
        if self.secret_file:
            raise ConfigError("login stands beside secret_file; who only shares a secret has no pages to log in at")
        if not is_safe(self.issuer):
            raise ConfigError(
                f"issuer is {_without_password(self.issuer)!r:.200}; with a login it must be https://HOST/PATH"
                " (http:// only for this machine), where its discovery document is"
            )

    def _check_algorithms(self) -> None:
        fitting = OF_SECRETS if self.secret_file else OF_KEYS
        for algorithm in self.algorithms:
            if algorithm in fitting:
                continue
            if algorithm in OF_SECRETS:
                raise ConfigError(
                    f"algorithms has {algorithm!r} beside public keys: anybody could sign with those; it must be among "
                    f"{', '.join(OF_KEYS)} (or give secret_file in place of keys)"
                )
            raise ConfigError(f"algorithms has {algorithm!r:.50}; each must be one of {', '.join(fitting)}")


def _require_text(key: str, text: str) -> None:
    if not text.strip():
        raise ConfigError(f"{key} is missing or empty; it must be a text")
    if len(text) > TEXT_LENGTH_MAX:
        raise ConfigError(f"{key} has {len(text)} characters; it must have {TEXT_LENGTH_MAX} at most")


def _without_password(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    return url.replace(f"{parts.netloc.rpartition('@')[0]}@", "…@", 1) if "@" in parts.netloc else url
