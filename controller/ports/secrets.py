"""Secrets, as the controller's parts see them: what wraps their keys, and the rows that hold them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class WrappedKey:
    """A data key, as the key of `key_id` wraps it."""

    key_id: str
    wrapped: bytes = field(repr=False)


class KeySource(Protocol):
    """Has keys that wrap data keys. `context`: of the secret; its data key is bound to it.

    Raises cronring.controller.errors.KeysAway while it gives no answer; SecretLocked for what it can't, or won't, open.
    """

    async def current(self) -> str:
        """The id of the key that wraps now."""
        ...

    def has(self, key_id: str) -> bool:
        """Whether this source may be able to open what that key has wrapped."""
        ...

    async def wrap(self, data_key: bytes, context: str) -> WrappedKey: ...
    async def unwrap(self, wrapped: WrappedKey, context: str) -> bytes: ...


@dataclass(frozen=True, slots=True)
class EncryptedRow:
    """An envelope, and its row. `context` names the table; `row_id` is unique there."""

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
        """Replace the row's envelope. False: another controller has replaced it before."""
        ...
