"""Secrets as the controller's parts speak of them: who wraps their keys, and the rows that they lie in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class WrappedKey:
    """A data key, as the key of `key_id` wraps it."""

    key_id: str
    wrapped: bytes = field(repr=False)


class KeySource(Protocol):
    """Who has keys that wrap data keys. `context`: of the secret, to which its key is bound.

    Raises cronring.controller.errors.KeysAway while it gives no answer; SecretLocked for what it can't, or won't, open.
    """

    async def current(self) -> str:
        """The id of the key that wraps now."""
        ...

    def has(self, key_id: str) -> bool:
        """Whether to ask it for what that key has wrapped."""
        ...

    async def wrap(self, data_key: bytes, context: str) -> WrappedKey: ...
    async def unwrap(self, wrapped: WrappedKey, context: str) -> bytes: ...


@dataclass(frozen=True, slots=True)
class EncryptedRow:
    """An envelope, and where it lies. Where `context` says, no two have one `row_id`."""

    row_id: int
    context: str
    encrypted: str = field(repr=False)


class EncryptedRows(Protocol):
    """All that is encrypted in the database. Raises cronring.controller.errors.StoreUnavailable or StoreError."""

    async def by_key(self) -> Mapping[str, int]:
        """How many there are, by the id of their key."""
        ...

    async def encrypted_otherwise(self, key_id: str, after_id: int, limit: int) -> Sequence[EncryptedRow]:
        """Those of other keys, by `row_id`, from after one on."""
        ...

    async def replace(self, row: EncryptedRow, encrypted: str) -> bool:
        """Another envelope in place of the row's, unless somebody was first."""
        ...
