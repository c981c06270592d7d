"""Options that several commands share, under one environment variable each."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from cronring.cli.credentials import trust_options
from cronring.cli.printing import say
from cronring.client.environment import DEFAULT_CONTROLLER, known_controllers, parse_addresses

Command = TypeVar("Command", bound=Callable[..., Any])

ROW_ID: Final = click.IntRange(1, 2**63 - 1)  # of an execution, a delivery, ...


def count(lowest: int = 1) -> click.IntRange:
    """A number of things, as far as the API has room for it."""
    return click.IntRange(lowest, 2**31 - 1)


class Addresses(click.ParamType[tuple[str, ...]]):
    """HOST:PORT,HOST:PORT,..."""

    name = "HOST:PORT,..."

    def convert(
        self, value: str | tuple[str, ...], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        try:
            return parse_addresses(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


DAY_S: Final = 86_400.0


class Duration(click.ParamType[float]):
    """Seconds, as `30`, `30s`, `1m30s`, `500ms` or `2h`, from `least_s` to `most_s`.

    Without bounds of its own, from a millisecond to 36,500 days, as everywhere in cronring.
    """

    name = "DURATION"

    def __init__(self, least_s: float = 0.001, most_s: float = 36_500 * DAY_S) -> None:
        self.least_s = least_s
        self.most_s = most_s

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        length_s = float(value) if isinstance(value, int | float) else self._read(value, param, ctx)
        if not self.least_s <= length_s <= self.most_s:
            bounds = f"{_length(self.least_s)} to {_length(self.most_s)}"
            self.fail(f"{str(value)[:60]!r} is out of range: it must be from {bounds}", param, ctx)
        return length_s

    def _read(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from cronring.schema.duration import DurationError, parse_duration

        text = value.strip()
        if text.replace(".", "", 1).isdecimal() and text.isascii():
            return float(text)
        try:
            return parse_duration(text) / 1000
        except DurationError as error:
            self.fail(f"{value!r}: {error}", param, ctx)


class OrUnset(click.ParamType[Any]):
    """What another type takes, or "" to unset."""

    def __init__(self, kind: click.ParamType[Any]) -> None:
        self._kind = kind
        self.name = kind.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            return ""
        try:
            return self._kind.convert(value, param, ctx)
        except click.BadParameter as error:
            self.fail(f'{error.message.rstrip(".")}. Leave it out for the default; "" unsets it.', param, ctx)


def _length(length_s: float) -> str:
    from cronring.schema.duration import format_duration

    return format_duration(round(length_s * 1_000)) if length_s else "0s"


def option(*flags: str, **settings: Any) -> Callable[[Command], Command]:
    """A click option that is also CRONRING_<FLAG>, whatever command it is on."""
    longest = max((flag for flag in flags if flag.startswith("-")), key=len)
    name = "CRONRING_" + longest.lstrip("-").replace("-", "_").upper()
    return click.option(*flags, envvar=name, **settings)


def whose_controllers() -> str:
    """In words, where the addresses that the running command asks came from; "" where that is not known."""
    context = click.get_current_context(silent=True)
    source = context.get_parameter_source("controllers") if context is not None else None
    match source:
        case click.core.ParameterSource.COMMANDLINE:
            return "--controllers"
        case click.core.ParameterSource.ENVIRONMENT:
            return "CRONRING_CONTROLLERS"
        case None:
            return ""
        case _:
            from cronring.client.running_dev import context_file, controllers_of_dev

            return f"the running `cronring dev` ({context_file()})" if controllers_of_dev() else "the default"


addresses_option = option(
    "--controllers",
    type=Addresses(),
    default=known_controllers,
    show_default=f"those of your running `cronring dev`, else {DEFAULT_CONTROLLER}",
    help="gRPC addresses of controllers; the first that answers serves.",
)


def controllers_option(command: Command) -> Command:
    """--controllers, who one is to them, and how they are known."""
    return addresses_option(trust_options(command))


output_option = option(
    "-o",
    "--output",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="A table for people (aligned columns in a pipe), or JSON for programs.",
)


class Secret(click.ParamType[str]):
    """A value that may be one, or @FILE to read it from there. Whoever gives it on the command line is warned."""

    name = "URL|@FILE"

    def __init__(self, is_secret: Callable[[str], bool]) -> None:
        self._is_secret = is_secret

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value.startswith("@"):
            try:
                return Path(value[1:]).read_text("utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                self.fail(f"{value[1:]}: {getattr(error, 'strerror', None) or 'it is no UTF-8 text'}", param, ctx)
        if param is not None and ctx is not None and _is_typed(param, ctx) and self._is_secret(value):
            flag = param.opts[0]
            variable = param.envvar or f"{ctx.auto_envvar_prefix}_{flag.lstrip('-').replace('-', '_').upper()}"
            say(
                f"warning: everybody on this machine can read this {flag} in a list of processes. Give it by "
                f"{variable}, or as {flag} @FILE",
                err=True,
            )
        return value


def _is_typed(param: click.Parameter, ctx: click.Context) -> bool:
    return ctx.get_parameter_source(param.name or "") is click.core.ParameterSource.COMMANDLINE


def _has_password(url: str) -> bool:
    from cronring.controller.store.url import has_password

    return has_password(url)


DATABASE_URL: Final = Secret(_has_password)
WEBHOOK_SECRET: Final = Secret(bool)
# Most have no secret in them. Those that do are given as @FILE: nobody can tell them apart by looking.
WEBHOOK_URL: Final = Secret(lambda _: False)

database_option = option(
    "--database-url",
    type=DATABASE_URL,
    help="PostgreSQL, as any libpq URL: postgresql://user:password@host/database. @FILE reads it from there.",
)


class Schema(click.ParamType[str]):
    """The name of a schema of the database."""

    name = "NAME"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from cronring.controller.config import ConfigError, check_schema

        try:
            return check_schema("the name", value)
        except ConfigError as error:
            self.fail(str(error), param, ctx)


schema_option = option(
    "--schema",
    type=Schema(),
    default="cronring",
    show_default=True,
    help="The schema of the database with cronring's tables. Two clusters may share a database, each with its own.",
)


def log_options(command: Command) -> Command:
    """How processes that stay log: --log-level and --log-format."""
    level = option(
        "--log-level",
        type=click.Choice(["debug", "info", "warning", "error"]),
        default="info",
        show_default=True,
        help="The least that is logged.",
    )
    log_format = option(
        "--log-format",
        type=click.Choice(["auto", "console", "json"]),
        default="auto",
        show_default=True,
        help="auto: for people on a terminal, JSON lines elsewhere.",
    )
    return level(log_format(command))


stop_on_eof_option = option(
    "--stop-on-eof",
    is_flag=True,
    help="Stop when standard input ends, so as not to outlive whoever holds its other end.",
)


def limit_option(default: int) -> Callable[[Command], Command]:
    return click.option("-n", "--limit", type=count(), default=default, show_default=True, help="At most so many rows.")


def require_database_url(url: str | None) -> str:
    """The URL. Raises click.UsageError saying what to set when there is none."""
    if url:
        return url
    raise click.UsageError(
        "no database is given. Set CRONRING_DATABASE_URL or --database-url, such as "
        "postgresql://user:password@host/database. (Only `cronring dev` brings a PostgreSQL of its own.)"
    )
