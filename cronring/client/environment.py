"""Whom a client asks, and who it is there: by this process's environment, and by the files that the CLI keeps."""

import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from cronring.client.errors import Unauthenticated
from cronring.client.kept_logins import find_login, is_anything_kept, is_fresh
from cronring.client.running_dev import controllers_of_dev, running_dev

CONTROLLERS: Final = "CRONRING_CONTROLLERS"
TOKEN: Final = "CRONRING_TOKEN"  # noqa: S105 - the variable's name
TOKEN_FILE: Final = "CRONRING_TOKEN_FILE"  # noqa: S105 - the variable's name
DEFAULT_CONTROLLER: Final = "127.0.0.1:7400"
_BYTES_MAX: Final = 16 * 1024  # JWTs with many groups have some thousand

Tell = Callable[[str], None]


class Found(NamedTuple):
    """What a client is made with."""

    addresses: tuple[str, ...]
    token: str
    ca: Path | None
    insecure: bool | None


class Identity(NamedTuple):
    """`token` "": none is given. `ca` None: CRONRING_CA, else the CAs of the operating system."""

    token: str = ""
    ca: Path | None = None
    server_name: str = ""
    insecure: bool | None = None


def parse_addresses(text: str) -> tuple[str, ...]:
    """Of HOST:PORT,HOST:PORT,... Raises ValueError."""
    addresses = tuple(part.strip() for part in text.split(",") if part.strip())
    if not addresses:
        raise ValueError("names no address; give HOST:PORT, several separated by commas")
    for address in addresses:
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise ValueError(f"{address!r} is not HOST:PORT; an example is {DEFAULT_CONTROLLER}")
    return addresses


def known_controllers() -> tuple[str, ...]:
    """Where none are given: those of this user's `cronring dev`; else what a controller listens on by default."""
    return controllers_of_dev() or (DEFAULT_CONTROLLER,)


def given_controllers() -> tuple[str, ...]:
    """By CRONRING_CONTROLLERS, else the known ones. Raises ValueError."""
    text = os.environ.get(CONTROLLERS, "")
    try:
        return parse_addresses(text) if text else known_controllers()
    except ValueError as error:
        raise ValueError(f"{CONTROLLERS} {error}") from None


def given_token(tell: Tell) -> str:
    """By CRONRING_TOKEN, else CRONRING_TOKEN_FILE; "": by neither. Raises ValueError. `tell` hears of risks."""
    if token := os.environ.get(TOKEN, "").strip():
        return token
    path = os.environ.get(TOKEN_FILE, "")
    return read_token(Path(path), TOKEN_FILE, tell) if path else ""


def read_token(path: Path, named: str, tell: Tell) -> str:
    """`named`: the flag or variable that names the file. Raises ValueError."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(_BYTES_MAX + 1)
    except OSError as error:
        raise ValueError(f"{named} {path}: {error.strerror}") from None
    if mode & 0o077:
        tell(f"others on this machine can read the token in {path}; `chmod 600 {path}` ends that")
    token = text.decode("ascii", "replace").strip()
    if not token or len(text) > _BYTES_MAX:
        raise ValueError(f"{named} {path}: it has {'no token' if not token else 'too much'} in it")
    return token


def of_dev(addresses: Sequence[str], given: Identity, tell: Tell, *, own_token: bool) -> Identity:
    """What a `cronring dev` that runs says of its controllers, if these are its; else what is given.

    Its word counts more than the environment's, which was meant for another cluster. `own_token`: but not more than the
    token. Raises ValueError.
    """
    dev = running_dev(addresses)
    if dev is None:
        return given
    token = given.token if own_token or not dev.token_file else read_token(Path(dev.token_file), "the dev's", tell)
    if not dev.ca:
        return given._replace(token=token, ca=None, insecure=True)
    return given._replace(token=token, ca=Path(dev.ca), insecure=None)


def found() -> Found:
    """As the command line would find it, without its flags. Raises ValueError, Unauthenticated, LoginError."""
    addresses = given_controllers()
    identity = of_dev(addresses, Identity(given_token(_warn)), _warn, own_token=False)
    token = identity.token or kept_token(addresses)
    return Found(addresses, token, identity.ca, identity.insecure)


def _warn(words: str) -> None:
    warnings.warn(words, stacklevel=5)


def kept_token(addresses: tuple[str, ...]) -> str:
    """Of `cronring login`; "": nobody has logged in. Raises Unauthenticated if it has expired; LoginError."""
    login = find_login(addresses) if is_anything_kept() else None
    if login is None:
        return ""
    if not is_fresh(login.expires_s, 0):
        raise Unauthenticated("the login that `cronring login` keeps has expired; `cronring whoami` renews it.")
    return login.token
