"""Targets: envelopes as the database may have them, key files, and what a program that wraps keys may answer."""

import asyncio
import contextlib
import os
import tempfile
from pathlib import Path
from typing import Final

from cronring.controller.errors import KeysAway, SecretLocked
from cronring.controller.runtime.key_command import _answer, _bytes, _key_id
from cronring.controller.services.vault import Vault, open_endpoint
from cronring.trust.envelopes import KEY_ID, Envelope, EnvelopeError
from cronring.trust.keyfile import KEYS_MAX, KeyFileError, read_keys
from tests.fuzz.bounds import Misbehaved, as_text

_VAULT: Final = Vault([], plain_allowed=True)
_FILE: Final = Path(tempfile.mkdtemp()) / "key"


def envelope(data: bytes) -> None:
    """An envelope that is read is written alike; what it holds is an endpoint, or locked."""
    text = as_text(data)
    with contextlib.suppress(EnvelopeError):
        if not KEY_ID.fullmatch(Envelope.parse(text).key_id):
            raise Misbehaved("a key's id that can't be")
    for each in (text, Envelope("plain", b"", data).text()):
        with contextlib.suppress(SecretLocked):
            asyncio.run(open_endpoint(_VAULT, "w", each))


def key_file(data: bytes) -> None:
    """Keys, or words of what is wrong that quote nothing."""
    with os.fdopen(os.open(_FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as opened:
        opened.write(data)
    try:
        keys = read_keys(_FILE)
    except KeyFileError as refused:
        if not str(refused).isprintable() or len(str(refused)) > 300:
            raise Misbehaved(f"a refusal that can't be shown: {str(refused)[:100]!r}") from refused
        return
    if not 1 <= len(keys) <= KEYS_MAX or {len(key.key) for key in keys} != {32}:
        raise Misbehaved("keys that are none")


def key_answer(data: bytes) -> None:
    """An id and bytes, or KeysAway."""
    for read in (_key_id, lambda answer: _bytes(answer, "wrapped")):
        with contextlib.suppress(KeysAway):
            if not read(_answer(data)):
                raise Misbehaved("nothing is taken for an answer")
