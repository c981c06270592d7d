"""What became of requests with an Idempotency-Key. It is kept for a day, and a repeated request is answered from it."""

from typing import Final, NamedTuple, Protocol

KEPT_MS: Final = 86_400_000
KEYS_MAX: Final = 10_000  # of one principal
GIVEN_UP_MS: Final = 120_000  # twice the time of a request: by then its controller has given it up, or died


class RequestKey(NamedTuple):
    """The caller, the method, and the key that the caller gave."""

    principal: str
    method: str
    key: str


class FormerRequest(NamedTuple):
    """`answer` None: it is being done. If it is `old` as well, nobody knows whether it was done."""

    request_hash: bytes
    answer: bytes | None
    old: bool


class RequestKeys(Protocol):
    async def begin(self, key: RequestKey, request_hash: bytes) -> int | FormerRequest:
        """The instant at which this request began, for `end` and `forget`; or the former request of the key.

        Raises cronring.controller.errors.TooManyKeys if the principal has too many keys.
        """
        ...

    async def end(self, key: RequestKey, begun_at: int, answer: bytes) -> None:
        """The request was done: keep its answer."""
        ...

    async def forget(self, key: RequestKey, begun_at: int) -> None:
        """The request has changed nothing: its key is free again."""
        ...
