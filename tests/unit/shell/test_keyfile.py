"""The file of --secrets-key: who may read it, what is in it, and what is said of one that is wrong."""

import base64
import os
from pathlib import Path

import pytest

from cronring.trust.keyfile import KeyFile, KeyFileError, make_key, read_keys, write_keys

GOOD = base64.b64encode(b"k" * 32).decode()


def test_what_is_written_is_read_by_its_owner_alone(tmp_path: Path) -> None:
    file, keys = tmp_path / "secrets.key", (make_key(), make_key())
    write_keys(file, keys)
    assert file.stat().st_mode & 0o777 == 0o600
    assert read_keys(file) == keys
    for key in keys:
        assert base64.b64encode(key.key).decode() not in repr(key)
        assert repr(key.key) not in repr(key)


@pytest.mark.parametrize(
    ("mode", "by_its_user", "by_root"),
    [(0o600, True, True), (0o400, True, True), (0o640, False, True), (0o440, False, True), (0o604, False, False),
     (0o660, False, False), (0o644, False, False)],
)  # fmt: skip
def test_a_file_that_is_open_to_others_is_refused(tmp_path: Path, mode: int, by_its_user: bool, by_root: bool) -> None:
    file = tmp_path / "secrets.key"
    write_keys(file, [make_key()])
    file.chmod(mode)
    allowed = by_root if os.getuid() == 0 else by_its_user
    if allowed:
        assert len(read_keys(file)) == 1
        return
    with pytest.raises(KeyFileError, match=rf"is open to others \(mode {mode:04o}\); make it 0600"):
        read_keys(file)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "has 0 keys; it must have 1 to 100"),
        ("# a remark\n\n", "has 0 keys"),
        (f"a {GOOD}\na {GOOD}\n", "has two keys of one id"),
        (f"{GOOD}\n", "line 1: must be an id, a space, and 32 bytes in base64"),
        (f"a {GOOD} more\n", "line 1: must be"),
        (f"# head\nplain {GOOD}\n", "line 2: must be"),
        (f"kms:a {GOOD}\n", "line 1: must be"),
        ("a c2hvcnQ=\n", "line 1: must be"),
        ("a notbase64!\n", "line 1: must be"),
        (f"a \x80{GOOD[1:]}\n", "line 1: must be"),
        ("\xff\xfe", "line 1: must be"),
        ("".join(f"a{number} {GOOD}\n" for number in range(101)), "has 101 keys"),
        ("#" * 70_000, "has more than 65536 bytes"),
    ],
)
def test_what_is_wrong_is_said_and_no_key_is_quoted(tmp_path: Path, content: str, says: str) -> None:
    file = tmp_path / "secrets.key"
    file.write_text(content, "latin-1")
    file.chmod(0o600)
    with pytest.raises(KeyFileError) as refused:
        read_keys(file)
    assert str(file) in str(refused.value)
    assert says in str(refused.value)
    assert GOOD not in str(refused.value)


def test_one_that_is_replaced_is_taken_and_one_that_is_wrong_is_not(tmp_path: Path) -> None:
    file, first, second = tmp_path / "secrets.key", make_key(), make_key()
    with pytest.raises(KeyFileError, match="No such file"):
        KeyFile(file)
    write_keys(file, [first])
    held = KeyFile(file)
    assert not held.reload()
    write_keys(file, [second, first])
    assert held.reload()
    assert held.keys == (second, first)
    assert held.find(first.key_id) == first
    file.write_text("nothing of the kind")
    assert not held.reload()
    assert "line 1" in held.problem
    assert held.keys == (second, first), "the old ones go on"
    write_keys(file, [second])
    assert held.reload()
    assert (held.problem, held.find(first.key_id)) == ("", None)
