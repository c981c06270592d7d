"""Where logins are kept: secrets in the keyring if there is one, else in a file that only its owner reads."""

import contextlib
import fcntl
import json
import os
import secrets
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

from cronring.client.errors import ClientError
from cronring.client.keyrings import get_secret, put_secret, remove_secret

FOLDER_MODE: Final = 0o700
FILE_MODE: Final = 0o600
_SECRETS: Final = ("token", "refresh_token", "client_secret")


class LoginError(ClientError):
    """What is kept of logins can't be used; the message says what to do."""


@dataclass(frozen=True, slots=True)
class KeptLogin:
    """A token, for whom it is, and what it is renewed with."""

    controllers: tuple[str, ...]  # who is shown it, and nobody else
    issuer: str
    client_id: str
    token_url: str
    id_token: bool  # which of an issuer's tokens it is
    expires_s: int
    token: str
    refresh_token: str = ""
    client_secret: str = ""

    @property
    def name(self) -> str:
        return ",".join(self.controllers)


def is_fresh(expires_s: int, least_s: int) -> bool:
    """Whether a token counts for so long yet, by this machine's clock. `expires_s`: since 1970; 0: never."""
    return not expires_s or time.time() + least_s < expires_s  # noqa: TID251 - the shell of this process


def credentials_file() -> Path:
    """$XDG_CONFIG_HOME/cronring/credentials.json, as a rule below ~/.config."""
    config = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(config) if config.startswith("/") else Path.home() / ".config") / "cronring" / "credentials.json"


def is_anything_kept() -> bool:
    """Cheap: every command asks."""
    with contextlib.suppress(OSError, RuntimeError):  # there is no home, or nobody may look there
        return credentials_file().exists()
    return False


def find_login(addresses: tuple[str, ...]) -> KeptLogin | None:
    """The one for exactly these controllers; else the latest for these and others. Raises LoginError."""
    wanted = set(addresses)
    fitting = [each for each in _read() if wanted <= set(each["controllers"])]
    exact = [each for each in fitting if wanted == set(each["controllers"])]
    return _login((exact or fitting)[-1]) if fitting else None


def keep_login(login: KeptLogin) -> str:
    """In place of an earlier one for the same controllers. Says where its secrets are. Raises LoginError."""
    public: dict[str, Any] = asdict(login) | {"controllers": list(login.controllers)}
    hidden = {name: public.pop(name) for name in _SECRETS}
    in_keyring = put_secret(login.name, json.dumps(hidden))
    others = [each for each in _read() if set(each["controllers"]) != set(login.controllers)]
    _write([*others, public if in_keyring else public | hidden])
    return "the keyring" if in_keyring else str(credentials_file())


def forget_login(addresses: tuple[str, ...]) -> bool:
    """Whether there was one for exactly these controllers. Raises LoginError."""
    kept = _read()
    left = [each for each in kept if set(each["controllers"]) != set(addresses)]
    for each in kept:
        if each not in left and "token" not in each:
            remove_secret(",".join(each["controllers"]))
    if len(left) < len(kept):
        _write(left)
    return len(left) < len(kept)


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Commands at one time take turns: a refresh token counts once, and a file is read and written as a whole."""
    file = credentials_file()
    try:
        _make_folder(file.parent)
        lock = os.open(file.with_name("credentials.lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, FILE_MODE)
    except OSError as error:
        raise LoginError(f"{file.parent} can't be used: {error.strerror}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _make_folder(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
    folder.chmod(FOLDER_MODE)


def _read() -> list[dict[str, Any]]:
    """Each with all its keys, those of secrets excepted. Raises LoginError for a file that isn't ours."""
    file = credentials_file()
    try:
        with file.open() as opened:
            found = os.fstat(opened.fileno())
            if found.st_uid != os.getuid() or found.st_mode & 0o077:
                raise LoginError(
                    f"others can read or change {file}, which has your tokens. `chmod 600 {file}` ends that"
                )
            kept = json.load(opened)["logins"]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise LoginError(f"{file} can't be read: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, RecursionError):
        raise LoginError(f"{file} is none of ours. Remove it, and log in again") from None
    needed = {field.name for field in fields(KeptLogin)} - set(_SECRETS)
    if not isinstance(kept, list) or not all(isinstance(each, dict) and needed <= each.keys() for each in kept):
        raise LoginError(f"{file} is none of ours. Remove it, and log in again")
    return kept


def _login(kept: dict[str, Any]) -> KeptLogin | None:
    """None where the keyring has lost it."""
    if "token" not in kept:
        found = get_secret(",".join(kept["controllers"]))
        if found is None:
            return None
        kept = kept | json.loads(found)
    known = {field.name for field in fields(KeptLogin)}
    return KeptLogin(**{name: value for name, value in kept.items() if name in known} | {
        "controllers": tuple(kept["controllers"])
    })  # fmt: skip


def _write(kept: list[dict[str, Any]]) -> None:
    """Whoever reads meanwhile reads what was, or what is."""
    file = credentials_file()
    other = file.with_name(f"{file.name}.{secrets.token_hex(8)}")
    try:
        _make_folder(file.parent)
        with os.fdopen(os.open(other, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, FILE_MODE), "w") as opened:
            json.dump({"logins": kept}, opened, indent=1)
            opened.flush()
            os.fsync(opened.fileno())
        other.replace(file)
    except OSError as error:
        with contextlib.suppress(OSError):
            other.unlink()
        raise LoginError(f"{file} can't be written: {error.strerror}") from None
