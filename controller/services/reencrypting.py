"""What is encrypted by an old key is encrypted anew by the current one, so that the old one can go.

Every controller does so, with no order among them: whoever replaces an envelope names the one that it has opened. Of
two that are at it, one wins. Who dies in the middle leaves some of them to the next look.
"""

from typing import Final, NamedTuple

from cronring.controller.errors import SecretLocked
from cronring.controller.ports.secrets import EncryptedRows
from cronring.controller.services.vault import Vault

_AT_ONCE: Final = 100


class Reencrypted(NamedTuple):
    """What a look came to. `left`: still encrypted by other keys. `locked`: those of them that don't open, and why."""

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
                # A data key of its own again: whoever has found the old one has no use for it.
                await rows.replace(row, await vault.encrypt(row.context, secret))
            except SecretLocked as error:
                troubles.append(str(error))
        after_id = page[-1].row_id
    counts = await rows.by_key()
    left = sum(count for each, count in counts.items() if each != key_id)
    return Reencrypted(key_id, sum(counts.values()), left, len(troubles), troubles[-1] if troubles else "")
