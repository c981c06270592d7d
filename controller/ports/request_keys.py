"""What requests with an Idempotency-Key have become, for a day: whoever repeats one is answered as before."""

from typing import Final, NamedTuple, Protocol

KEPT_MS: Final = 86_400_000
KEYS_MAX: Final = 10_000  # of one principal
GIVEN_UP_MS: Final = 120_000  # twice what a request has: whoever began it has given it up, or died


class RequestKey(NamedTuple):
    """Whose it is, of which method, and what the caller calls it."""

    principal: str
    method: str
    key: str


class FormerRequest(NamedTuple):
    """`answer` None: it is being done; or, where it is `old`, nobody knows what became of it."""

    request_hash: bytes
    answer: bytes | None
    old: bool


class RequestKeys(Protocol):
    async def begin(self, key: RequestKey, request_hash: bytes) -> int | FormerRequest:
        """The instant by which this request ends; or what another one of the key has become.

        Raises cronring.controller.errors.TooManyKeys for who keeps too many.
        """
        ...

    async def end(self, key: RequestKey, begun_at: int, answer: bytes) -> None:
        """It was done, and this was answered."""
        ...

    async def forget(self, key: RequestKey, begun_at: int) -> None:
        """It has changed nothing."""
        ...
