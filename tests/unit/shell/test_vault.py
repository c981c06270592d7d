"""Secrets are encrypted by the key that wraps, and opened by any; where there is none, that is said."""

from pathlib import Path

import pytest

from cronring.controller.core.notify.endpoint import Endpoint, origin
from cronring.controller.errors import Conflict, SecretLocked
from cronring.controller.runtime.key_command import CommandKeys
from cronring.controller.runtime.secret_keys import KeyFileSource
from cronring.controller.services.vault import Vault, encrypt_endpoint, open_endpoint
from cronring.trust.envelopes import Envelope
from cronring.trust.keyfile import make_key, write_keys
from tests.support.keys import Kms, file_vault, key_file

AT = Endpoint("https://example.com:8443/hooks/xyzzy?token=plugh", "whsec_secret")
PLAIN = Vault([], plain_allowed=True)


def test_only_scheme_host_and_port_are_shown() -> None:
    assert origin(AT.url) == "https://example.com:8443"
    assert origin("http://[::1]:9/x") == "http://[::1]:9"
    assert {word for word in ("xyzzy", "plugh", "whsec_") if word in repr(AT)} == set()


async def test_it_opens_for_its_own_webhook_alone(tmp_path: Path) -> None:
    vault = file_vault(key_file(tmp_path / "key", make_key()))
    encrypted = await encrypt_endpoint(vault, "pager", AT)
    assert await open_endpoint(vault, "pager", encrypted) == AT
    assert not {word for word in ("xyzzy", "plugh", "whsec_", "example") if word in encrypted}
    with pytest.raises(SecretLocked, match="moved it here from another row"):
        await open_endpoint(vault, "other", encrypted)
    envelope = Envelope.parse(encrypted)
    for changed in (
        Envelope(envelope.key_id, envelope.wrapped, envelope.content[:-1] + b"x"),
        Envelope(envelope.key_id, envelope.wrapped[:-1] + b"x", envelope.content),
    ):
        with pytest.raises(SecretLocked, match="somebody changed it"):
            await open_endpoint(vault, "pager", changed.text())
    with pytest.raises(SecretLocked, match="no envelope of a form that this release knows"):
        await open_endpoint(vault, "pager", "cronring9$a$b$c")


async def test_a_key_that_is_missing_is_named_and_opens_once_it_is_back(tmp_path: Path) -> None:
    first, second = make_key(), make_key()
    file = key_file(tmp_path / "key", first)
    vault = file_vault(file)
    encrypted = await encrypt_endpoint(vault, "pager", AT)
    write_keys(file.file, [second])
    assert file.reload()
    with pytest.raises(SecretLocked, match=f"encrypted by key {first.key_id}, which this controller doesn't have"):
        await open_endpoint(vault, "pager", encrypted)
    write_keys(file.file, [second, first])
    assert file.reload()
    assert await open_endpoint(vault, "pager", encrypted) == AT
    assert Envelope.parse(await encrypt_endpoint(vault, "pager", AT)).key_id == second.key_id


async def test_without_a_key_nothing_is_taken_unless_plaintext_is_allowed() -> None:
    with pytest.raises(Conflict, match=r"--secrets-key FILE, which `cronring secrets-key init FILE` makes, or"):
        await encrypt_endpoint(Vault([], plain_allowed=False), "pager", AT)
    encrypted = await encrypt_endpoint(PLAIN, "pager", AT)
    assert encrypted.startswith("cronring1$plain$$")
    assert await open_endpoint(PLAIN, "pager", encrypted) == AT
    for junk in ("cronring1$plain$$", "cronring1$plain$$e30="):
        with pytest.raises(SecretLocked, match="holds no URL and secret; remove it, and add it again"):
            await open_endpoint(PLAIN, "pager", junk)


async def test_a_program_encrypts_and_a_file_beside_it_still_opens(tmp_path: Path) -> None:
    file = key_file(tmp_path / "key", make_key())
    before = await encrypt_endpoint(file_vault(file), "pager", AT)
    now_s = 0.0
    both = Vault([CommandKeys(Kms(tmp_path).command, lambda: now_s), KeyFileSource(file)], plain_allowed=False)
    after = await encrypt_endpoint(both, "pager", AT)
    assert Envelope.parse(after).key_id == await both.current() == "kms:first"
    assert await open_endpoint(both, "pager", before) == await open_endpoint(both, "pager", after) == AT
