"""This controller's keys for secrets. When they are replaced, it reads them anew, and encrypts the secrets anew."""

import asyncio
import time
from typing import Final

from cronring.controller.config import ConfigError, ProcessConfig
from cronring.controller.errors import KeysAway, SecretLocked, StoreError, StoreUnavailable
from cronring.controller.ports.secrets import EncryptedRows, KeySource, WrappedKey
from cronring.controller.runtime.key_command import CommandKeys
from cronring.controller.runtime.log import Log
from cronring.controller.services.reencrypting import Reencrypted, reencrypt
from cronring.controller.services.vault import Vault
from cronring.trust.envelopes import EnvelopeError, Purpose, decrypt, encrypt
from cronring.trust.holding import RELOAD_S
from cronring.trust.keyfile import KeyFile, KeyFileError

LOOK_S: Final = 60.0  # between two looks at what is encrypted, unless the key has changed


class KeyFileSource:
    """cronring.controller.ports.secrets.KeySource, of a file's keys."""

    def __init__(self, file: KeyFile) -> None:
        self._file = file

    async def current(self) -> str:
        return self._file.keys[0].key_id

    def has(self, key_id: str) -> bool:
        return self._file.find(key_id) is not None

    async def wrap(self, data_key: bytes, context: str) -> WrappedKey:
        first = self._file.keys[0]
        return WrappedKey(first.key_id, encrypt(first.key, data_key, Purpose.KEY, context))

    async def unwrap(self, wrapped: WrappedKey, context: str) -> bytes:
        found = self._file.find(wrapped.key_id)
        try:
            if found is not None:
                return decrypt(found.key, wrapped.wrapped, Purpose.KEY, context)
        except EnvelopeError as error:
            raise SecretLocked(f"key {wrapped.key_id} does not open {context}: {error}") from error
        raise SecretLocked(f"key {wrapped.key_id} of {context} is no longer in {self._file.file}")


class SecretKeys:
    """`vault`: encrypts and opens secrets by these keys. With a command and a file, the command wraps, and both open.

    Raises ConfigError for a file, or a command, that can't be used.
    """

    def __init__(self, config: ProcessConfig) -> None:
        self._file = _key_file(config)
        sources: list[KeySource] = []
        if config.secrets_command:
            sources.append(_command(config.secrets_command))
        if self._file is not None:
            sources.append(KeyFileSource(self._file))
        self.vault = Vault(sources, plain_allowed=config.insecure)
        self._seen: Reencrypted | None = None
        self._away = ""  # why the last look could not be ended

    async def follow(self, rows: EncryptedRows, log: Log) -> None:
        """For ever. Without any key there is nothing to do, and nothing is asked."""
        looked_s = float("-inf")
        while self.vault.keyed:
            if self._reload(log):
                looked_s = float("-inf")
            try:
                current = await self.vault.current()
                if self._seen is None or self._seen.key_id != current or time.monotonic() - looked_s >= LOOK_S:
                    self._tell(await reencrypt(rows, self.vault), log)
                    looked_s = time.monotonic()
                self._away = ""
            except (KeysAway, SecretLocked) as error:
                self._away = str(error)
                log.warning("secrets_key_not_asked", reason=self._away)
            except (StoreError, StoreUnavailable) as error:
                log.warning("secrets_not_looked_at", reason=str(error))
            await asyncio.sleep(RELOAD_S)

    def gauges(self) -> dict[str, float]:
        """As of the last look; none while there was no look."""
        if self._seen is None:
            return {}
        seen = self._seen
        return {
            "secrets_stored": float(seen.stored),
            "secrets_on_other_keys": float(seen.left),
            "secrets_locked": float(seen.locked),
        }

    def key_id(self) -> str:
        """Of the key that encrypts, as of the last look; "": there is none."""
        return self._seen.key_id if self._seen is not None else ""

    def problem(self) -> str:
        """Why a secret does not open here, or keys can't be used; "": nothing is wrong."""
        file = self._file.problem if self._file is not None else ""
        locked = self._seen.trouble if self._seen is not None else ""
        return "; ".join(each for each in (file, self._away, locked) if each)

    def _reload(self, log: Log) -> bool:
        """Whether the file has other keys now."""
        if self._file is None:
            return False
        before = self._file.problem
        changed = self._file.reload()
        if changed:
            log.info("secrets_key_replaced", keys=", ".join(key.key_id for key in self._file.keys))
        if self._file.problem and self._file.problem != before:
            log.error("secrets_key_not_taken", reason=self._file.problem)
        return changed

    def _tell(self, seen: Reencrypted, log: Log) -> None:
        if seen.locked and (self._seen is None or self._seen.trouble != seen.trouble):
            log.error("secrets_locked", secrets=seen.locked, reason=seen.trouble)
        if self._seen is not None and self._seen.left > seen.left:
            log.info("secrets_reencrypted", key=seen.key_id, left=seen.left)
        self._seen = seen


def _key_file(config: ProcessConfig) -> KeyFile | None:
    if config.secrets_key is None:
        return None
    try:
        return KeyFile(config.secrets_key)
    except KeyFileError as error:
        raise ConfigError(f"secrets_key: {error}") from error


def _command(command: str) -> CommandKeys:
    try:
        return CommandKeys(command, time.monotonic)
    except ValueError as error:
        raise ConfigError(f"secrets_command: {error}") from error
