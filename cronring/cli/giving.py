"""What commands share that give secrets out: how long these last, and where they go."""

import contextlib
import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TextIO, TypeVar

import click

from cronring.cli.failures import Failure
from cronring.cli.options import Duration
from cronring.cli.printing import say

Command = TypeVar("Command", bound=Callable[..., Any])

NEVER: Final = math.inf


class Lasting(Duration):
    """A duration, or `never`, which is NEVER."""

    name = "DURATION|never"

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if value == NEVER or str(value).lower() == "never":
            return NEVER
        return super().convert(value, param, ctx)


LASTING: Final = Lasting(1.0)
secret_file_option = click.option(
    "--secret-file",
    type=click.Path(path_type=Path),
    help="Write the secret there, for you alone (mode 0600), instead of printing it.",
)


def lasting_s(expires: float, what: str) -> float | None:
    """None: for ever, which is warned of."""
    if expires != NEVER:
        return expires
    say(f"warning: {what} works until somebody revokes it, wherever it gets to", err=True)
    return None


@contextlib.contextmanager
def handing_over(path: Path | None) -> Iterator[Callable[[str], None]]:
    """What takes the secret, once it is made: a new file that is there before, or standard output alone.

    Nothing is made where it could not be kept. Raises Failure.
    """
    if path is None:
        yield say
        return
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise Failure(f"--secret-file {path}: {error.strerror}; nothing was made") from None
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        try:
            yield lambda secret: _write(file, path, secret)
        except BaseException:
            path.unlink()
            raise


def _write(file: TextIO, path: Path, secret: str) -> None:
    try:
        file.write(f"{secret}\n")
        file.flush()
    except OSError as error:
        raise Failure(
            f"--secret-file {path}: {error.strerror}; its secret is lost: revoke what was made, and make it again"
        ) from None
    say(f"written to {path}", err=True)
