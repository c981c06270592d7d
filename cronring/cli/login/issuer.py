"""What an issuer says of itself, and the tokens that it gives."""

import base64
import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from cronring.cli.failures import EXIT_UNREACHABLE, Failure
from cronring.cli.json_http import JsonAnswer
from cronring.cli.login.http import IssuerSilent, ask_issuer
from cronring.controller.identity.addresses import is_safe
from cronring.controller.identity.claims import LATEST_S

SHOWN_MAX: Final = 200
DISCOVERY: Final = "/.well-known/openid-configuration"


class Endpoints(NamedTuple):
    """Where a login asks. "": the issuer has no such flow."""

    issuer: str
    authorization: str
    device: str
    token: str


class Registered(NamedTuple):
    """Who asks: this program, as the issuer knows it."""

    client_id: str
    client_secret: str = ""

    def form(self) -> dict[str, str]:
        return {"client_id": self.client_id} | ({"client_secret": self.client_secret} if self.client_secret else {})


class GivenToken(NamedTuple):
    """What an issuer has given: the token that controllers are shown, and what it is renewed with."""

    token: str
    refresh_token: str
    expires_s: int  # since 1970; 0: it doesn't say


def discover(issuer: str) -> Endpoints:
    """Raises Failure."""
    answer = asked(issuer.rstrip("/") + DISCOVERY)
    if answer.status != 200:
        raise Failure(f"{issuer} says nothing of how to log in: HTTP {answer.status}. Is this the issuer's URL?")
    said = answer.text("issuer")
    if said.rstrip("/") != issuer.rstrip("/"):
        raise Failure(f"{issuer} says that it is {said!r:.200}; give --issuer as it calls itself")
    found = Endpoints(
        said, answer.text("authorization_endpoint"), answer.text("device_authorization_endpoint"),
        answer.text("token_endpoint"),
    )  # fmt: skip
    for url in found[1:]:
        if url and not is_safe(url):
            raise Failure(f"{issuer} names {url!r:.200}, which is not https (http is only for this machine)")
    if not found.token:
        raise Failure(f"{issuer} names no token_endpoint, so it gives no tokens")
    return found


def asked(url: str, form: Mapping[str, str] | None = None) -> JsonAnswer:
    """Raises Failure where there is no answer."""
    try:
        return ask_issuer(url, form)
    except IssuerSilent as error:
        raise Failure(str(error), EXIT_UNREACHABLE) from None


def given(answer: JsonAnswer, *, id_token: bool) -> GivenToken:
    """Of a good answer of the token endpoint. An access token is taken, if controllers can read it. Raises Failure."""
    token = answer.text("id_token" if id_token else "access_token")
    if not id_token and not _claims(token):
        token = answer.text("id_token")
    claims = _claims(token)
    if not claims:
        wanted = "ID token" if id_token else "JWT"
        raise Failure(f"the issuer gave no {wanted}, which controllers could check; is the scope `openid` asked for?")
    expires = claims.get("exp")
    if not isinstance(expires, int) or not 0 <= expires <= LATEST_S:  # controllers refuse others, and say so
        expires = 0
    return GivenToken(token, answer.text("refresh_token"), expires)


def refused_words(answer: JsonAnswer) -> str:
    """An issuer's own words for a refusal."""
    words = answer.text("error_description") or answer.text("error") or "no reason is given"
    return f"{words[:SHOWN_MAX]} (HTTP {answer.status})"


def holder(token: str) -> str:
    """Who it says that it is for: nobody has checked it here, and the controllers will."""
    claims = _claims(token)
    names = ("email", "preferred_username", "sub")
    return next((str(claims[name])[:SHOWN_MAX] for name in names if claims.get(name)), "somebody")


def _claims(token: str) -> dict[str, Any]:
    """Unchecked; empty for what is no JWT."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        found = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
