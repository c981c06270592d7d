"""Log in by another device (RFC 8628): somebody types a short code there, while this one asks whether it is done."""

import time
from typing import Final

from cronring.cli.failures import Failure
from cronring.cli.json_http import JsonAnswer
from cronring.cli.login.issuer import Endpoints, Registered, asked, refused_words
from cronring.cli.printing import say
from cronring.schema.duration import measured

GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"
INTERVAL_S: Final = 5.0  # where the issuer says nothing, and what is added when it asks for patience
INTERVAL_S_MIN: Final = 1.0
INTERVAL_S_MAX: Final = 60.0
PATIENCE_S: Final = 600.0
PATIENCE_S_MAX: Final = 3_600.0


def by_device(endpoints: Endpoints, registered: Registered, scopes: tuple[str, ...]) -> JsonAnswer:
    """A good answer of the token endpoint. Raises Failure."""
    begun = asked(endpoints.device, registered.form() | {"scope": " ".join(scopes)})
    code, typed, page = begun.text("device_code"), begun.text("user_code"), begun.text("verification_uri")
    if begun.status != 200 or not (code and typed and page):
        raise Failure(f"the issuer begins no login: {refused_words(begun)}")
    say(f"open {page} on any device, and type the code {typed}", err=True)
    if whole := begun.text("verification_uri_complete"):
        say(f"or open {whole}", err=True)
    patience_s = min(begun.number("expires_in", PATIENCE_S), PATIENCE_S_MAX)
    interval_s = begun.number("interval", INTERVAL_S)
    deadline_s = time.monotonic() + patience_s
    form = registered.form() | {"grant_type": GRANT, "device_code": code}
    while time.monotonic() < deadline_s:
        time.sleep(min(max(interval_s, INTERVAL_S_MIN), INTERVAL_S_MAX))
        answer = asked(endpoints.token, form)
        if answer.status == 200:
            return answer
        match answer.text("error"):
            case "authorization_pending":
                continue
            case "slow_down":
                interval_s += INTERVAL_S
            case "expired_token":
                break
            case _:
                raise Failure(f"the issuer has not logged you in: {refused_words(answer)}")
    raise Failure(
        f"nobody has typed the code within {measured(patience_s * 1_000)}. Begin again: cronring login --device"
    )
