"""Issuers by whose pages people log in, as the code that serves browsers needs them."""

from typing import NamedTuple, Protocol

from cronring.schema.identity import Principal


class LoginRefused(Exception):  # named for what happened
    """An issuer has named nobody. The message tells the person who logs in why, and holds no secret."""


class LoginAsked(NamedTuple):
    """What a browser takes to an issuer. `challenge`: S256 of the PKCE verifier, without which a code is worthless."""

    redirect_uri: str
    state: str
    nonce: str
    challenge: str


class LoginAnswered(NamedTuple):
    """What the browser came back with, and what it took there. `issuer`: as the answer names it (RFC 9207), or ""."""

    redirect_uri: str
    code: str
    issuer: str
    nonce: str
    verifier: str


class LoginIssuer(Protocol):
    """One of those that the identity file lets people log in by."""

    @property
    def name(self) -> str: ...

    async def url(self, asked: LoginAsked) -> str:
        """Where the browser is to go. Raises cronring.controller.errors.IssuerAway."""
        ...

    async def principal(self, answered: LoginAnswered) -> Principal:
        """Who has logged in there. Raises LoginRefused, IssuerAway."""
        ...
