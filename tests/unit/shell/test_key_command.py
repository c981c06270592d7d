"""--secrets-command: a real program that wraps keys; and every way in which one can fail."""

import asyncio
import json
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import uvloop

from cronring.controller.errors import KeysAway, SecretLocked
from cronring.controller.ports.secrets import WrappedKey
from cronring.controller.runtime import key_command
from cronring.controller.runtime.key_command import (
    CURRENT_S,
    REMEMBERED_S,
    SILENT_S,
    CommandKeys,
    _answer,
    _bytes,
)
from tests.support.keys import Kms

PLACE = "cron_webhooks/pager"
KEY = b"d" * 32


@pytest.fixture
def clock() -> SimpleNamespace:
    return SimpleNamespace(now_s=1_000.0)


@pytest.fixture
def kms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kms:
    monkeypatch.setenv("CRONRING_DATABASE_URL", "postgresql://ann:xyzzy@127.0.0.1:1/x")  # which the program refuses
    return Kms(tmp_path)


@pytest.fixture
def keys(kms: Kms, clock: SimpleNamespace) -> CommandKeys:
    return CommandKeys(kms.command, lambda: clock.now_s)


async def test_a_key_is_wrapped_and_unwrapped_and_asked_for_once(
    kms: Kms, keys: CommandKeys, clock: SimpleNamespace
) -> None:
    wrapped = await keys.wrap(KEY, PLACE)
    assert wrapped.key_id == "kms:first"
    assert keys.has(wrapped.key_id)
    assert not keys.has("key-1")
    assert KEY not in wrapped.wrapped
    for _ in range(3):
        assert await keys.unwrap(wrapped, PLACE) == KEY
    assert [json.loads(line)["do"] for line in kms.asked()] == ["wrap", "unwrap"]
    assert {json.loads(line)["context"] for line in kms.asked()} == {PLACE}
    clock.now_s += REMEMBERED_S
    assert await keys.unwrap(wrapped, PLACE) == KEY
    assert len(kms.asked()) == 3, "it is not remembered for ever"


def test_it_is_so_on_the_loop_of_a_controller(kms: Kms, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is uvloop's, with processes of its own making."""
    monkeypatch.setattr(key_command, "SILENT_S", 0.0)

    async def story() -> None:
        keys = CommandKeys(kms.command, time.monotonic)
        wrapped = await keys.wrap(KEY, PLACE)
        assert await keys.unwrap(wrapped, PLACE) == KEY
        for fault, says in (
            ("dies", "exit code 3"),
            ("floods", "more than 65536"),
            ("hangs", "no answer within 200ms"),
        ):
            kms.set("fault", fault)
            if fault == "hangs":
                monkeypatch.setattr(key_command, "TIMEOUT_S", 0.2)
            with pytest.raises(KeysAway, match=says):
                await keys.wrap(KEY, PLACE)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(story())
    assert not [each for each in psutil.Process().children() if "kms.py" in " ".join(each.cmdline())]


async def test_what_is_remembered_is_bounded(keys: CommandKeys, kms: Kms, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_command, "REMEMBERED_MAX", 1)
    first, second = await keys.wrap(KEY, "a"), await keys.wrap(KEY, "b")
    for wrapped, place in ((first, "a"), (second, "b"), (second, "b"), (first, "a")):
        assert await keys.unwrap(wrapped, place) == KEY
    assert len(kms.asked()) == 5


async def test_which_key_wraps_is_asked_each_minute(kms: Kms, keys: CommandKeys, clock: SimpleNamespace) -> None:
    assert await keys.current() == "kms:first"
    kms.set("current", "second")
    assert await keys.current() == "kms:first"
    clock.now_s += CURRENT_S
    assert await keys.current() == "kms:second"
    assert len(kms.asked()) == 2


async def test_a_key_that_is_gone_is_named(kms: Kms, keys: CommandKeys) -> None:
    wrapped = await keys.wrap(KEY, PLACE)
    kms.set("gone", "first")
    with pytest.raises(SecretLocked, match=r"^--secrets-command refused to unwrap: key first is disabled$"):
        await keys.unwrap(wrapped, PLACE)
    kms.set("gone", "")
    assert await keys.unwrap(wrapped, PLACE) == KEY


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("hangs", "gave no answer within 200ms"),
        ("dies", "ended with exit code 3"),
        ("floods", "answered with more than 65536 bytes"),
        ("babbles", "answered with something other than a JSON object"),
        ("lies", "answered without the id of a key, or with one that can't be"),
    ],
)
async def test_one_that_misbehaves_is_away(
    kms: Kms, keys: CommandKeys, clock: SimpleNamespace, fault: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if fault == "hangs":
        monkeypatch.setattr(key_command, "TIMEOUT_S", 0.2)
    kms.set("fault", fault)
    with pytest.raises(KeysAway, match=says):
        await keys.current()
    monkeypatch.undo()
    kms.set("fault", "")
    if fault != "lies":
        with pytest.raises(KeysAway, match=says):  # who comes next does not wait as long
            await keys.wrap(KEY, PLACE)
        clock.now_s += SILENT_S
    assert await keys.current() == "kms:first"


async def test_one_that_lies_of_a_data_key_is_not_believed(kms: Kms, keys: CommandKeys) -> None:
    kms.set("fault", "lies")
    with pytest.raises(SecretLocked, match="unwrapped 3 bytes; a data key has 32"):
        await keys.unwrap(WrappedKey("kms:first", b"wrapped"), PLACE)


async def test_a_program_that_is_not_there_is_said() -> None:
    keys = CommandKeys("/nowhere/kms --key 1", time.monotonic)
    with pytest.raises(KeysAway, match="can't be started: /nowhere/kms: No such file"):
        await keys.current()


@pytest.mark.parametrize(
    "said", [b"", b"null", b"[" * 60_000, b"\xff", b"1" * 5_000, b'{"key": "a b"}', b'{"key": 7.5e9}']
)
def test_nothing_else_is_taken_for_an_answer(said: bytes) -> None:
    with pytest.raises(KeysAway):
        _bytes(_answer(said), "wrapped")


@pytest.mark.parametrize("command", [" ", "kms 'open"])
def test_what_is_no_command_is_refused(command: str) -> None:
    with pytest.raises(ValueError, match=r"names no program|No closing quotation"):
        CommandKeys(command, time.monotonic)
