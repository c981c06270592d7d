"""`cronring secrets-key`: the file of keys by which controllers encrypt secrets in the database."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import click

from cronring.cli.failures import Failure
from cronring.cli.options import output_option
from cronring.cli.output import print_json
from cronring.cli.printing import say, say_lines

if TYPE_CHECKING:
    from cronring.trust.keyfile import WrappingKey

Made = TypeVar("Made")

_NEW: Final = click.Path(dir_okay=False, path_type=Path)
_THERE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group("secrets-key")
def secrets_key() -> None:
    """The file of --secrets-key: keys that encrypt webhooks' URLs and secrets in the database.

    Its first key encrypts; every key in it decrypts. Controllers read it again within 10 s. Keep a copy of it apart
    from the database: without the key, what it has encrypted is lost.

    \b
    A new key, step by step, with the file copied to all after each:
      cronring secrets-key add secrets.key      the new one, ID, decrypts
      cronring secrets-key use secrets.key ID   it encrypts; what others have
                                                encrypted is encrypted anew
      cronring doctor                           `secrets` names it alone:
      cronring secrets-key retire secrets.key   the others are over
    """


@secrets_key.command("init")
@click.argument("file", type=_NEW)
def init(file: Path) -> None:
    """Make FILE, with one key, for you alone (mode 0600).

    \b
    Example:
      cronring secrets-key init secrets.key
    """
    from cronring.trust.keyfile import make_key

    if file.exists():
        raise Failure(f"{file} is there already, and is not overwritten; `cronring secrets-key add` adds a key to it")
    made = make_key()
    _write(file, [made])
    say(f"{file}: key {made.key_id}. Without it what it encrypts is lost: keep a copy apart from the database's")


@secrets_key.command("add")
@click.argument("file", type=_THERE)
def add(file: Path) -> None:
    """Add a new key to FILE, after the others, and print its id. It opens, and does not encrypt yet."""
    from cronring.trust.keyfile import make_key

    keys, made = _read(file), make_key()
    _write(file, [*keys, made])
    say(made.key_id)
    say(f"copy {file} to all controllers, then: cronring secrets-key use {file} {made.key_id}", err=True)


@secrets_key.command("use")
@click.argument("file", type=_THERE)
@click.argument("key_id", metavar="ID")
def use(file: Path, key_id: str) -> None:
    """Put key ID first in FILE: from then on it encrypts.

    What other keys have encrypted is encrypted anew, by controllers themselves. All must know the key before (`add`).
    """
    keys = _read(file)
    chosen = _find(file, keys, key_id)
    _write(file, [chosen, *(key for key in keys if key != chosen)])
    say(f"{file}: key {chosen.key_id} encrypts. `cronring doctor` says when no other is needed")


@secrets_key.command("retire")
@click.argument("file", type=_THERE)
def retire(file: Path) -> None:
    """Leave in FILE the key that encrypts, and no other.

    What the others have encrypted opens no more. Ask `cronring doctor` first, and keep them for as long as backups of
    the database are kept that need them.
    """
    first, *others = _read(file)
    _write(file, [first])
    gone = ", ".join(key.key_id for key in others) or "none"
    say(f"{file}: key {first.key_id} is left; gone: {gone}")


@secrets_key.command("show")
@click.argument("file", type=_THERE)
@output_option
def show(file: Path, output: str) -> None:
    """The ids of the keys in FILE, and which one encrypts. The keys themselves are not shown."""
    ids = [key.key_id for key in _read(file)]
    if output == "json":
        print_json([{"id": key_id, "encrypts": key_id == ids[0]} for key_id in ids])
    else:
        say_lines(f"{key_id}  {'encrypts and opens' if key_id == ids[0] else 'opens'}" for key_id in ids)


def _find(file: Path, keys: "Sequence[WrappingKey]", key_id: str) -> "WrappingKey":
    found = next((key for key in keys if key.key_id == key_id), None)
    if found is None:
        raise Failure(f"{file} has no key {key_id!r}; it has {', '.join(key.key_id for key in keys)}")
    return found


def _read(file: Path) -> "tuple[WrappingKey, ...]":
    from cronring.trust.keyfile import read_keys

    return _checked(lambda: read_keys(file))


def _write(file: Path, keys: "Sequence[WrappingKey]") -> None:
    from cronring.trust.keyfile import write_keys

    _checked(lambda: write_keys(file, keys))


def _checked(make: Callable[[], Made]) -> Made:
    """Raises Failure for what can't be read, used or written."""
    from cronring.trust.keyfile import KeyFileError

    try:
        return make()
    except KeyFileError as error:
        raise Failure(str(error)) from error
    except OSError as error:
        raise Failure(f"{error.filename}: {error.strerror}") from error
