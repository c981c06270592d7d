"""Targets: what strangers send as a token, and what an issuer publishes as its keys."""

import asyncio
import contextlib
import tempfile
from pathlib import Path
from typing import Final

from jwt import PyJWS

from cronring.controller.identity.jwks import Unusable, read_keys
from cronring.controller.identity.settings import OF_KEYS, GrantRule, IssuerSettings
from cronring.controller.identity.verifier import JwtVerifier
from cronring.controller.ports.identity import TokenRefused
from cronring.controller.runtime.clock import SystemClock
from cronring.schema.identity import PRINCIPAL_LENGTH_MAX, Principal, Role
from tests.fuzz.bounds import Misbehaved, as_text

_SECRET: Final = b"s" * 32
_MESSAGE_MAX: Final = 600


def _verifier() -> JwtVerifier:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "secret"
        file.write_bytes(_SECRET)
        rule = GrantRule("sre", Role.OPERATOR, "billing", "realm_access.roles")
        return JwtVerifier([IssuerSettings("fuzz", secret_file=file, grants=(rule,))], SystemClock())


_VERIFIER: Final = _verifier()


def _asked(text: str) -> Principal | None:
    try:
        return asyncio.run(_VERIFIER.principal(text))
    except TokenRefused as refused:
        if not 0 < len(str(refused)) <= _MESSAGE_MAX or not str(refused).isprintable():
            raise Misbehaved(f"a refusal that can't be shown: {str(refused)[:100]!r}") from refused
        return None


def token(data: bytes) -> None:
    """Nobody has the secret here, so whatever comes is refused."""
    text = as_text(data)
    _VERIFIER.knows(text)
    if _asked(text) is not None:
        raise Misbehaved("somebody got in")


def token_claims(data: bytes) -> None:
    """Claims that its issuer has signed: whoever they are of has a name that can be shown."""
    found = _asked(PyJWS().encode(data, _SECRET, "HS256"))
    if found is None:
        return
    if not found.name.isprintable() or not 0 < len(found.name) <= PRINCIPAL_LENGTH_MAX or not found.expires_us:
        raise Misbehaved(f"{found!r} is nobody")


def issuer_keys(data: bytes) -> None:
    with contextlib.suppress(Unusable):
        for key in read_keys(data, frozenset(OF_KEYS)):
            if not key.algorithms <= frozenset(OF_KEYS):
                raise Misbehaved(f"{key.algorithms} are none that were asked for")
