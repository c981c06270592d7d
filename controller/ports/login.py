"""Issuers by whose pages people log in, as those ask who serve the browser."""

from typing import NamedTuple, Protocol

from cronring.schema.identity import Principal


class LoginRefused(Exception):  # named for what happened
    """An issuer has named nobody. The message says why, for who wants in, and has no secret in it."""


class LoginAsked(NamedTuple):
    """What a browser is sent to an issuer with. `challenge`: S256 of what alone makes the code worth something."""

    redirect_uri: str
    state: str
    nonce: str
    challenge: str


class LoginAnswered(NamedTuple):
    """What it came back with, and what it was sent with. `issuer`: as the answer has it (RFC 9207), or ""."""

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
