"""Secrets that an old key encrypts are encrypted anew by the current key, so that the old key can go.

Every controller does so, and they need no order. A controller that replaces an envelope names the old envelope that it
has opened. So if two do it at once, one wins. If a controller dies in the middle, the next look does the rest.
"""

from typing import Final, NamedTuple

from cronring.controller.errors import SecretLocked
from cronring.controller.ports.secrets import EncryptedRows
from cronring.controller.services.vault import Vault

_AT_ONCE: Final = 100


class Reencrypted(NamedTuple):
    """What a look found. `left`: secrets still encrypted by other keys. `locked`: which of them don't open, and why."""

    key_id: str
    stored: int
    left: int
    locked: int
    trouble: str


async def reencrypt(rows: EncryptedRows, vault: Vault) -> Reencrypted:
    """All of them, once. Raises KeysAway, StoreUnavailable, StoreError; what was done by then stays done."""
    key_id, troubles, after_id = await vault.current(), list[str](), 0
    # docs/decisions/0073: no order among controllers, and none to give
    while page := await rows.encrypted_otherwise(key_id, after_id, _AT_ONCE):
        for row in page:
            try:
                secret = await vault.open(row.context, row.encrypted)
                # It gets a new data key: somebody who has found the old one can't use it any more.
                await rows.replace(row, await vault.encrypt(row.context, secret))
            except SecretLocked as error:
                troubles.append(str(error))
        after_id = page[-1].row_id
    counts = await rows.by_key()
    left = sum(count for each, count in counts.items() if each != key_id)
    return Reencrypted(key_id, sum(counts.values()), left, len(troubles), troubles[-1] if troubles else "")
