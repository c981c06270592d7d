"""Who the command line is to controllers: the bearer token that every call of it carries."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from cronring.cli.failures import Failure
from cronring.cli.printing import say

if TYPE_CHECKING:
    from cronring.client import Client

Command = TypeVar("Command", bound=Callable[..., Any])

TOKEN: Final = "CRONRING_TOKEN"  # noqa: S105  # the variable's name. There is no --token, as `ps` would show it
TOKEN_FILE: Final = "CRONRING_TOKEN_FILE"  # noqa: S105  # the variable's name
_KEY: Final = "cronring.token_file"
_BYTES_MAX: Final = 16 * 1024  # JWTs with many groups have some thousand


def _keep(ctx: click.Context, param: click.Parameter, value: Path | None) -> None:
    """A flag is above CRONRING_TOKEN, which is above CRONRING_TOKEN_FILE."""
    typed = ctx.get_parameter_source(param.name or "") is click.core.ParameterSource.COMMANDLINE
    ctx.meta[_KEY] = value if typed or not os.environ.get(TOKEN) else None


def token_option(command: Command) -> Command:
    """--token-file, which no function is given: `connect` looks it up."""
    return click.option(
        "--token-file",
        type=click.Path(path_type=Path),
        envvar=TOKEN_FILE,
        expose_value=False,
        callback=_keep,
        help=f"A file with your bearer token.  [default: the token in {TOKEN}, if any]",
    )(command)


def connect(addresses: tuple[str, ...], timeout_s: float = 5.0) -> "Client":
    """A client with the token of the running command, if it has one. Raises Failure for one that is none."""
    from cronring.client import Client

    try:
        return Client(addresses, timeout_s, token=_token())
    except ValueError as error:
        raise Failure(str(error)) from None


def _token() -> str:
    context = click.get_current_context(silent=True)
    path: Path | None = context.meta.get(_KEY) if context is not None else None
    return _read(path) if path is not None else os.environ.get(TOKEN, "").strip()


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(_BYTES_MAX + 1)
    except OSError as error:
        raise Failure(f"--token-file {path}: {error.strerror}") from None
    if mode & 0o077:
        say(f"warning: others on this machine can read the token in {path}; `chmod 600 {path}` ends that", err=True)
    token = text.decode("ascii", "replace").strip()
    if not token or len(text) > _BYTES_MAX:
        raise Failure(f"--token-file {path}: it has {'no token' if not token else 'too much'} in it")
    return token
