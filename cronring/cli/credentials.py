"""Who the command line is to controllers, and how it knows them: a bearer token, and the cluster's CA."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from cronring.cli.conditions import with_given_key
from cronring.cli.failures import Failure
from cronring.cli.printing import say
from cronring.client.environment import TOKEN, TOKEN_FILE, Identity, of_dev, read_token
from cronring.trust.names import CA, INSECURE, SERVER_NAME

if TYPE_CHECKING:
    from cronring.client import AsyncClient

Command = TypeVar("Command", bound=Callable[..., Any])

_KEY: Final = "cronring.token_file"
_TYPED: Final = "cronring.trust_typed"
_TOKEN_TYPED: Final = "cronring.token_typed"  # noqa: S105  # a key


def _keep(ctx: click.Context, param: click.Parameter, value: Path | None) -> None:
    """A flag is above CRONRING_TOKEN, which is above CRONRING_TOKEN_FILE."""
    typed = ctx.get_parameter_source(param.name or "") is click.core.ParameterSource.COMMANDLINE
    ctx.meta[_KEY] = value if typed or not os.environ.get(TOKEN) else None
    ctx.meta[_TOKEN_TYPED] = typed


def trust_options(command: Command) -> Command:
    """--token-file, --ca, --server-name and --insecure, which no function is given: `connect` looks them up."""
    token = click.option(
        "--token-file",
        type=click.Path(path_type=Path),
        envvar=TOKEN_FILE,
        expose_value=False,
        callback=_keep,
        help=f"A file with your bearer token.  [default: the token in {TOKEN}, if any]",
    )
    ca = _trust("--ca", "ca", CA, "The cluster's CA.  [default: your `cronring dev`'s; else the system's CAs]",
                type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE")  # fmt: skip
    name = _trust("--server-name", "server_name", SERVER_NAME, metavar="NAME",
                  about="What the certificate must be for.  [default: with --ca controller.cronring]")  # fmt: skip
    insecure = _trust("--insecure", "insecure", INSECURE, "Plaintext, to this machine alone.", is_flag=True)
    return token(ca(name(insecure(command))))


def _trust(flag: str, name: str, variable: str, about: str, **settings: Any) -> Callable[[Command], Command]:
    def keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        ctx.meta[f"cronring.{name}"] = value
        if ctx.get_parameter_source(param.name or "") is click.core.ParameterSource.COMMANDLINE:
            ctx.meta[_TYPED] = True

    return click.option(flag, name, envvar=variable, expose_value=False, callback=keep, help=about, **settings)


def connect(addresses: tuple[str, ...], timeout_s: float = 5.0) -> "AsyncClient":
    """A client as the running command's options say. Raises Failure for what can't be."""
    from cronring.client import AsyncClient

    identity = identity_of(addresses)
    try:
        client = AsyncClient(
            addresses, timeout_s, token=identity.token, ca=identity.ca, server_name=identity.server_name,
            insecure=identity.insecure, waiting=_waiting,
        )  # fmt: skip
        return with_given_key(client)
    except ValueError as error:
        raise Failure(str(error)) from None


def identity_of(addresses: tuple[str, ...]) -> Identity:
    """Who the running command is for these controllers. Raises Failure for what can't be."""
    try:
        identity = Identity(_token(), _given("ca"), _given("server_name") or "", _given("insecure") or None)
        if not _said(_TYPED):
            identity = of_dev(addresses, identity, _warn, own_token=_said(_TOKEN_TYPED))
        return identity._replace(token=identity.token or stored_token(addresses) or "")
    except ValueError as error:
        raise Failure(str(error)) from None


def _waiting(why: str) -> None:
    say(f"waiting, for a minute at most: {why}", err=True)


def _said(what: str) -> bool:
    """By the command line itself."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(what))


def _given(name: str) -> Any:
    context = click.get_current_context(silent=True)
    return context.meta.get(f"cronring.{name}") if context is not None else None


def stored_token(addresses: tuple[str, ...]) -> str | None:
    """What `cronring login` keeps for these controllers, renewed; None: nothing. Raises Failure if it can't be renewed.

    A command that says by --controllers whom it asks is told of others by those. Completion waits for no issuer.
    """
    from cronring.client.kept_logins import is_anything_kept

    if not is_anything_kept():
        return None
    from cronring.cli.login.renewing import renewed_token

    context = click.get_current_context(silent=True)
    given: tuple[str, ...] = (context.params.get("controllers") if context is not None else None) or addresses
    return renewed_token(given, may_ask=context is not None and not context.resilient_parsing)


def _token() -> str:
    """Raises ValueError."""
    context = click.get_current_context(silent=True)
    path: Path | None = context.meta.get(_KEY) if context is not None else None
    return read_token(path, "--token-file", _warn) if path is not None else os.environ.get(TOKEN, "").strip()


def _warn(words: str) -> None:
    say(f"warning: {words}", err=True)
