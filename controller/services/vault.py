"""Encrypts secrets before they go into the database, and opens them only where they are used."""

from collections.abc import Sequence
from typing import Final

from cronring.controller.core.notify.endpoint import Endpoint
from cronring.controller.errors import Conflict, SecretLocked
from cronring.controller.ports.secrets import KeySource, WrappedKey
from cronring.trust.envelopes import PLAIN, Envelope, EnvelopeError, Purpose, decrypt, encrypt, new_key

_NO_KEY: Final = (
    "this controller has no key to encrypt secrets with; start all controllers with --secrets-key FILE, which "
    "`cronring secrets-key init FILE` makes, or with --secrets-command (docs/security.md)"
)


class Vault:
    """`sources`: the first one wraps, all can open. `plain_allowed`: without sources, secrets are kept unencrypted."""

    def __init__(self, sources: Sequence[KeySource], *, plain_allowed: bool) -> None:
        self._sources = tuple(sources)
        self._plain_allowed = plain_allowed

    @property
    def keyed(self) -> bool:
        return bool(self._sources)

    async def current(self) -> str:
        """The id of the key that encrypts now. Raises KeysAway."""
        return await self._sources[0].current() if self._sources else PLAIN

    async def encrypt(self, context: str, secret: bytes) -> str:
        """By a data key of its own. Raises Conflict where there is no key; KeysAway, SecretLocked."""
        if not self._sources:
            if not self._plain_allowed:
                raise Conflict(_NO_KEY)
            return Envelope(PLAIN, b"", secret).text()
        data_key = new_key()
        wrapped = await self._sources[0].wrap(data_key, context)
        content = encrypt(data_key, secret, Purpose.SECRET, context)
        return Envelope(wrapped.key_id, wrapped.wrapped, content).text()

    async def open(self, context: str, encrypted: str) -> bytes:
        """What was encrypted in that context. Raises SecretLocked, KeysAway."""
        try:
            envelope = Envelope.parse(encrypted)
            if envelope.key_id == PLAIN:
                return envelope.content
            source = self._source(envelope.key_id)
            if source is None:
                raise SecretLocked(
                    f"{context} is encrypted by key {envelope.key_id}, which this controller doesn't have"
                )
            data_key = await source.unwrap(WrappedKey(envelope.key_id, envelope.wrapped), context)
            return decrypt(data_key, envelope.content, Purpose.SECRET, context)
        except EnvelopeError as error:
            raise SecretLocked(f"{context} does not open: {error}") from error

    def _source(self, key_id: str) -> KeySource | None:
        return next((source for source in self._sources if source.has(key_id)), None)


def context_of_webhook(name: str) -> str:
    """As sql/queries/secrets.sql has it."""
    return f"cron_webhooks/{name}"


async def encrypt_endpoint(vault: Vault, webhook: str, endpoint: Endpoint) -> str:
    """Raises as Vault.encrypt does."""
    return await vault.encrypt(context_of_webhook(webhook), endpoint.packed())


async def open_endpoint(vault: Vault, webhook: str, encrypted: str) -> Endpoint:
    """Raises as Vault.open does."""
    raw = await vault.open(context_of_webhook(webhook), encrypted)
    try:
        return Endpoint.unpacked(raw)
    except (ValueError, TypeError, RecursionError):
        raise SecretLocked(f"webhook {webhook!r} holds no URL and secret; remove it, and add it again") from None
