"""People who log in by a browser at an issuer: OpenID Connect's code flow with PKCE, the issuer's side of it.

The code alone is worth nothing without the verifier. It is changed for an ID token, which is checked as any token is
(verifier.py). Its audience is this client, and its nonce that of the browser.
"""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote_plus, urlencode, urlsplit

from cronring.controller.config import ConfigError
from cronring.controller.errors import IssuerAway
from cronring.controller.identity.addresses import is_safe
from cronring.controller.identity.fetching import Fetched, HttpKeyFetching, Unfetched
from cronring.controller.identity.settings import IssuerSettings, LoginSettings
from cronring.controller.identity.verifier import ExpectedId, JwtVerifier
from cronring.controller.ports.clock import Clock
from cronring.controller.ports.identity import TokenRefused
from cronring.controller.ports.login import LoginAnswered, LoginAsked, LoginRefused
from cronring.schema.identity import Principal

DISCOVERY: Final = "/.well-known/openid-configuration"
DISCOVERED_NS: Final = 900 * 1_000_000_000  # after which it is asked again, as for its keys
SECRET_LENGTH_MAX: Final = 4_096
WORDS_MAX: Final = 200


class Discovered(NamedTuple):
    """What an issuer says of itself. `says_who`: its answers name it (RFC 9207). `basic`: how it knows clients."""

    authorization: str
    token: str
    says_who: bool
    basic: bool


class OidcLogin:
    """cronring.controller.ports.login.LoginIssuer."""

    def __init__(
        self, settings: IssuerSettings, login: LoginSettings, verifier: JwtVerifier, fetching: HttpKeyFetching,
        clock: Clock,
    ) -> None:  # fmt: skip
        """Raises ConfigError for a file of the client's secret that can't be used."""
        self._settings = settings
        self._login = login
        self._verifier = verifier
        self._fetching = fetching
        self._clock = clock
        self._secret = "" if login.secret_file is None else _read_secret(login.secret_file, settings.name)
        self._discovered: Discovered | None = None
        self._discovered_ns = 0

    @property
    def name(self) -> str:
        return self._settings.name

    async def url(self, asked: LoginAsked) -> str:
        """Raises IssuerAway."""
        there = (await self._endpoints()).authorization
        query = {
            "response_type": "code", "client_id": self._login.client_id, "redirect_uri": asked.redirect_uri,
            "scope": " ".join(self._login.scopes), "state": asked.state, "nonce": asked.nonce,
            "code_challenge": asked.challenge, "code_challenge_method": "S256",
        }  # fmt: skip
        return f"{there}{'&' if urlsplit(there).query else '?'}{urlencode(query)}"

    async def principal(self, answered: LoginAnswered) -> Principal:
        """Raises LoginRefused, IssuerAway."""
        there = await self._endpoints()
        if answered.issuer != self._settings.issuer and (answered.issuer or there.says_who):
            raise LoginRefused("another issuer has answered than was asked")
        token = await self._exchanged(there, answered)
        expected = ExpectedId(self.name, self._login.client_id, answered.nonce)
        try:
            return await self._verifier.named_by(token, expected)
        except TokenRefused as refused:
            raise LoginRefused(str(refused)) from None

    async def _exchanged(self, there: Discovered, answered: LoginAnswered) -> str:
        """The ID token."""
        form = {
            "grant_type": "authorization_code", "code": answered.code, "redirect_uri": answered.redirect_uri,
            "code_verifier": answered.verifier,
        }  # fmt: skip
        headers = {}
        if self._secret and there.basic:
            pair = f"{quote_plus(self._login.client_id)}:{quote_plus(self._secret)}"
            headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            form |= {"client_id": self._login.client_id} | ({"client_secret": self._secret} if self._secret else {})
        try:
            found = await self._fetching.post(there.token, form, headers)
        except Unfetched as error:
            raise self._away(there.token, str(error)) from None
        if found.status >= 500:
            raise self._away(there.token, f"HTTP {found.status}")
        said = _members(found)
        token = said.get("id_token")
        if found.status != 200 or not isinstance(token, str):
            why = said.get("error_description") or said.get("error") or "it gives no ID token"
            raise LoginRefused(f"issuer {self.name!r} refuses: {_words(why)} (HTTP {found.status})")
        return token

    async def _endpoints(self) -> Discovered:
        """Raises IssuerAway, also for what can't be used."""
        now_ns = self._clock.now_ns()
        if self._discovered is not None and now_ns - self._discovered_ns < DISCOVERED_NS:
            return self._discovered
        url = self._settings.issuer.rstrip("/") + DISCOVERY
        try:
            self._discovered = self._read(url, Fetched(200, await self._fetching.get(url)))
        except Unfetched as error:
            if self._discovered is None:
                raise self._away(url, str(error)) from None
        self._discovered_ns = now_ns
        return self._discovered

    def _read(self, url: str, fetched: Fetched) -> Discovered:
        said = _members(fetched)
        if said.get("issuer") != self._settings.issuer:
            raise self._away(url, f"it says that it is {_words(said.get('issuer'))}, and not {self._settings.issuer!r}")
        endpoints = said.get("authorization_endpoint"), said.get("token_endpoint")
        for each in endpoints:
            if not isinstance(each, str) or not is_safe(each):
                raise self._away(url, f"it names {_words(each)}, which is not https (http is only for this machine)")
        # As OpenID Connect has it, where an issuer doesn't say.
        methods = said.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        return Discovered(
            str(endpoints[0]),
            str(endpoints[1]),
            said.get("authorization_response_iss_parameter_supported") is True,
            isinstance(methods, list) and "client_secret_basic" in methods,
        )

    def _away(self, url: str, why: str) -> IssuerAway:
        return IssuerAway(f"nobody can log in by issuer {self.name!r} now: {url}: {why}")


class Logins:
    """All issuers that people log in by. Call `close` at the end, in the loop that asked."""

    def __init__(self, issuers: tuple[IssuerSettings, ...], verifier: JwtVerifier, clock: Clock) -> None:
        """Raises ConfigError as OidcLogin does."""
        self._fetching = HttpKeyFetching()
        self.issuers = tuple(
            OidcLogin(each, each.login, verifier, self._fetching, clock) for each in issuers if each.login is not None
        )

    async def close(self) -> None:
        await self._fetching.close()


def _members(fetched: Fetched) -> Mapping[str, Any]:
    """Of an object of JSON; none of what is no such thing."""
    try:
        found = json.loads(fetched.body.decode())
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, Mapping) else {}


def _words(said: object) -> str:
    """Somebody else's, so that they can be shown and logged."""
    return f"{said!r:.{WORDS_MAX}}"


def _read_secret(path: Path, name: str) -> str:
    try:
        secret = path.read_text("ascii").strip()
    except OSError as error:
        raise ConfigError(f"{path}, of issuer {name!r}, can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}, of issuer {name!r}, has more than ASCII; it must be the client's secret") from None
    if not secret.isprintable() or not 1 <= len(secret) <= SECRET_LENGTH_MAX:
        raise ConfigError(f"{path}, of issuer {name!r}, is no line of 1 to {SECRET_LENGTH_MAX:,} characters")
    return secret
