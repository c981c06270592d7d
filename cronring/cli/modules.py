"""A module from a file: a .py, asked of its interpreter, or a schema's text form."""

import sys
from pathlib import Path
from typing import NamedTuple

from cronring.cli.failures import Failure
from cronring.schema.module import Module


class ReadModule(NamedTuple):
    """What a file declares. `digest`: hex SHA-256 over the schema's text and the source."""

    module: Module
    digest: str


def described(file: str | Path, namespace: str, python: str | None) -> ReadModule:
    """Raises Failure with every problem as `file:line: verb: message`, and what to do about each."""
    path = Path(file)
    if path.suffix == ".py":
        return _from_python(path, namespace, python or sys.executable)
    return _from_text(path)


def _from_python(path: Path, namespace: str, python: str) -> ReadModule:
    from cronring.runner.describe import DescribeFailed, read_program
    from cronring.runner.modules import InvalidFile, load_module

    try:
        loaded = load_module(read_program(path, python, namespace))
    except DescribeFailed as error:
        raise Failure(str(error)) from error
    except InvalidFile as error:
        # Lines of their own, as editors read FILE:LINE at the beginning of one.
        raise Failure(str(error), prefix="") from error
    return ReadModule(loaded.module, loaded.digest)


def _from_text(path: Path) -> ReadModule:
    from cronring.schema.digest import digest
    from cronring.schema.text import SchemaError, parse_module, print_module

    try:
        source = path.read_bytes()
        module = parse_module(source.decode())
    except UnicodeDecodeError as error:
        raise Failure(f"{path}: it is no UTF-8 text (byte {error.start})") from error
    except SchemaError as error:
        # Lines of their own, as editors read FILE:LINE at the beginning of one.
        raise Failure("\n".join(f"{path}:{each}" for each in error.every), prefix="") from error
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error
    return ReadModule(module, digest(print_module(module), b""))
