"""Options that several commands share, under one environment variable each."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

DEFAULT_CONTROLLER: Final = "127.0.0.1:7400"
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
        addresses = tuple(part.strip() for part in value.split(",") if part.strip())
        if not addresses:
            self.fail("names no address; give HOST:PORT, several separated by commas", param, ctx)
        for address in addresses:
            host, _, port = address.rpartition(":")
            if not host or not port.isdecimal() or not 0 < int(port) < 65536:
                self.fail(f"{address!r} is not HOST:PORT; an example is {DEFAULT_CONTROLLER}", param, ctx)
        return addresses


class Duration(click.ParamType[float]):
    """Seconds, as `30`, `30s`, `1m30s`, `500ms` or `2h`."""

    name = "DURATION"

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        from schema.duration import DurationError, parse_duration

        text = value.strip()
        if text.replace(".", "", 1).isdecimal() and text.isascii():
            return float(text)
        try:
            return parse_duration(text) / 1000
        except DurationError as error:
            self.fail(f"{value!r}: {error}", param, ctx)


def option(*flags: str, **settings: Any) -> Callable[[Command], Command]:
    """A click option that is also CRONRING_<FLAG>, whatever command it is on."""
    longest = max((flag for flag in flags if flag.startswith("-")), key=len)
    name = "CRONRING_" + longest.lstrip("-").replace("-", "_").upper()
    return click.option(*flags, envvar=name, show_envvar=True, **settings)


controllers_option = option(
    "--controllers",
    type=Addresses(),
    default=DEFAULT_CONTROLLER,
    show_default=True,
    help="gRPC addresses of controllers; the first that answers serves.",
)

output_option = option(
    "-o",
    "--output",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="A table for people (aligned columns in a pipe), or JSON for programs.",
)

database_option = option(
    "--database-url",
    metavar="URL",
    help="PostgreSQL, as any libpq URL: postgresql://user:password@host/database.",
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
    return click.option(
        "-n", "--limit", type=click.IntRange(min=1), default=default, show_default=True, help="At most so many rows."
    )


def require_database_url(url: str | None) -> str:
    """The URL. Raises click.UsageError saying what to set when there is none."""
    if url:
        return url
    raise click.UsageError(
        "no database is given. Set CRONRING_DATABASE_URL or --database-url, such as "
        "postgresql://user:password@host/database. (Only `cronring dev` brings a PostgreSQL of its own.)"
    )
