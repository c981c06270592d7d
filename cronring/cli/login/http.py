"""The few questions that a login asks an issuer."""

import urllib.request
from collections.abc import Mapping
from urllib.parse import urlencode

from cronring.cli.json_http import JsonAnswer, exchanged
from cronring.controller.identity.addresses import is_safe


class IssuerSilent(Exception):
    """There was no answer that could be read. The message says what there was instead."""


def ask_issuer(url: str, form: Mapping[str, str] | None = None) -> JsonAnswer:
    """GET, or POST of a form. Raises IssuerSilent."""
    if not is_safe(url):
        raise IssuerSilent(f"{url!r:.200} is not https (http is only for this machine), so nothing is asked there")
    request = urllib.request.Request(  # noqa: S310 - is_safe has looked at the scheme
        url,
        data=urlencode(form).encode() if form is not None else None,
        headers={"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "cronring"},
    )
    try:
        answer = exchanged(request)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise IssuerSilent(f"{url}: no answer: {reason}") from None
    if answer.status == 200 and answer.said is None:
        raise IssuerSilent(f"{url}: no answer: it is no object of JSON")
    return answer
