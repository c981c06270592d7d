"""The file of keys that wrap secrets' data keys: a line for each, the first one wraps, all of them open."""

import base64
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cronring.trust.envelopes import KEY_BYTES, PLAIN, new_key
from cronring.trust.files import write_file

FILE_BYTES_MAX: Final = 64 * 1024
KEYS_MAX: Final = 100
PRIVATE: Final = 0o600
_ID: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}", re.ASCII)
_HEAD: Final = """# Keys of the secrets that cronring keeps in PostgreSQL: `cronring secrets-key --help`.
# The first one encrypts, all of them open. Without them, those secrets are lost: keep a copy elsewhere.
"""


class KeyFileError(ValueError):
    """The file, or what is asked of it, is wrong. The message names the file, and quotes no key."""


@dataclass(frozen=True, slots=True)
class WrappingKey:
    """A key by its id, which is no secret."""

    key_id: str
    key: bytes = field(repr=False)


class KeyFile:
    """A file's keys, read anew when it is replaced. Raises KeyFileError."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.keys = read_keys(file)
        self.problem = ""  # why what is there now could not be taken

    def reload(self) -> bool:
        """Whether other keys are held now. What is wrong stands in `problem`; then the old ones stay."""
        try:
            keys = read_keys(self.file)
        except KeyFileError as error:
            self.problem = str(error)
            return False
        self.problem = ""
        changed, self.keys = keys != self.keys, keys
        return changed

    def find(self, key_id: str) -> WrappingKey | None:
        return next((key for key in self.keys if key.key_id == key_id), None)


def make_key() -> WrappingKey:
    """A new one, whose id nobody has."""
    return WrappingKey(f"key-{os.urandom(4).hex()}", new_key())


def read_keys(file: Path) -> tuple[WrappingKey, ...]:
    """Raises KeyFileError."""
    try:
        with file.open("rb") as opened:
            _check_mode(file, os.fstat(opened.fileno()))
            content = opened.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise KeyFileError(f"{file}: {error.strerror or error}") from error
    if len(content) > FILE_BYTES_MAX:
        raise KeyFileError(f"{file} has more than {FILE_BYTES_MAX} bytes")
    keys = _parsed(file, content)
    if not 1 <= len(keys) <= KEYS_MAX:
        raise KeyFileError(f"{file} has {len(keys)} keys; it must have 1 to {KEYS_MAX}")
    if len({key.key_id for key in keys}) < len(keys):
        raise KeyFileError(f"{file} has two keys of one id")
    return keys


def write_keys(file: Path, keys: Sequence[WrappingKey]) -> None:
    """For its owner alone. Raises OSError."""
    lines = [f"{key.key_id} {base64.b64encode(key.key).decode()}\n" for key in keys]
    write_file(file, (_HEAD + "".join(lines)).encode(), PRIVATE)


def _check_mode(file: Path, found: os.stat_result) -> None:
    """As PostgreSQL has it for keys: one of root's may be readable by a group, which is how Kubernetes mounts them."""
    forbidden = 0o037 if found.st_uid == 0 else 0o077
    if stat.S_IMODE(found.st_mode) & forbidden:
        allowed = "0600, or 0640 where root owns it"
        raise KeyFileError(f"{file} is open to others (mode {stat.S_IMODE(found.st_mode):04o}); make it {allowed}")


def _parsed(file: Path, content: bytes) -> tuple[WrappingKey, ...]:
    keys = []
    for number, line in enumerate(content.decode("ascii", "replace").splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        key = _key(words)
        if key is None:
            raise KeyFileError(f"{file}, line {number}: must be an id, a space, and {KEY_BYTES} bytes in base64")
        keys.append(key)
    return tuple(keys)


def _key(words: Sequence[str]) -> WrappingKey | None:
    if len(words) != 2 or not _ID.fullmatch(words[0]) or words[0] == PLAIN:
        return None
    try:
        key = base64.b64decode(words[1], validate=True)
    except ValueError:  # also of base64 that is no ASCII
        return None
    return WrappingKey(words[0], key) if len(key) == KEY_BYTES else None
