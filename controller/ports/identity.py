"""How a controller learns who calls."""

from typing import Protocol

from cronring.schema.identity import Principal


class TokenRefused(Exception):  # named for what happened
    """A bearer token is not valid. The message tells its holder why, and never repeats the token.

    `principal`: whose it was, where that is certain.
    """

    def __init__(self, message: str, principal: Principal | None = None) -> None:
        super().__init__(message)
        self.principal = principal


class Verifier(Protocol):
    """Knows one kind of bearer token."""

    def knows(self, token: str) -> bool:
        """Whether a token has the form of this kind. Hot; it must not raise."""
        ...

    async def principal(self, token: str) -> Principal:
        """Whose it is. Raises TokenRefused; IssuerAway or StoreUnavailable when that can't be told now."""
        ...
