"""Connections to PostgreSQL from any libpq URL, with the settings and codecs that all statements need.

Statements name no schema: each session's `search_path` is our schema alone. Channels of NOTIFY and advisory locks begin
with the schema's name, so several clusters share one database. Functions keep a path of their own (`CloseSchema`).
"""

import contextlib
import shlex
from collections.abc import Iterator
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, urlencode

import asyncpg

from cronring.controller.config import DEFAULT_SCHEMA, ConfigError, check_schema
from cronring.controller.errors import StoreError
from cronring.controller.store.errors import translated
from cronring.controller.store.hosts import connect_to_newest
from cronring.controller.store.url import url_fault
from cronring.sql.parameters import SetSession

# Quoted: generic in its stubs only.
Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

CONNECT_TIMEOUT_S: Final = 5.0
# libpq knows these. asyncpg would send them to the server as settings, and the server refuses them.
_LIBPQ_ONLY: Final = frozenset(
    {
        "connect_timeout", "keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count",
        "tcp_user_timeout", "channel_binding", "gssencmode", "gssdelegation", "sslcompression", "sslsni",
        "require_auth", "load_balance_hosts", "fallback_application_name", "hostaddr", "options",
    }
)  # fmt: skip
# timestamptz in binary is microseconds since 2000; the core counts from 1970.
EPOCH_2000_US: Final = 946_684_800_000_000
# Years 1 to 9999, which Python can print. A value from outside must not fail its whole batch.
FIRST_US: Final = -62_135_596_800_000_000
LAST_US: Final = 253_402_300_799_999_999


def _encode_timestamptz(instant: int) -> tuple[int]:
    if not FIRST_US <= instant <= LAST_US:  # hot: as min(max(...)) it would take twice as long
        instant = FIRST_US if instant < FIRST_US else LAST_US
    return (instant - EPOCH_2000_US,)


def _decode_timestamptz(value: tuple[int]) -> int:
    return value[0] + EPOCH_2000_US


async def set_session(connection: Connection, arguments: dict[str, Any]) -> None:
    """Set again what `connect_arguments` asked for: a pooler in between may have dropped it."""
    settings = arguments["server_settings"]
    await connection.execute(*SetSession(names=list(settings), values=list(settings.values())))


async def prepare_codecs(connection: Connection) -> None:
    """Instants are int microseconds since 1970: exact, and a tenth of the cost of a datetime."""
    await connection.set_type_codec(
        "timestamptz", schema="pg_catalog", format="tuple", encoder=_encode_timestamptz, decoder=_decode_timestamptz
    )


def connect_arguments(url: str, application: str, settings: dict[str, str], schema: str) -> dict[str, Any]:
    """Arguments of `connect_to_newest` and create_pool for a libpq URL; `settings` are the session's.

    Names are looked up in `schema` alone, whatever the URL, the role or the database say of search_path. Of several
    hosts, the one that takes writes is chosen. `options=-c name=value` become session settings; `connect_timeout`
    (seconds) is honoured; what asyncpg has no use for (keepalives and the like) is left out.
    """
    address, _, query_text = url.partition("?")
    query = dict(parse_qsl(query_text, keep_blank_values=True))
    options = _parse_options(query.get("options", ""))
    kept = urlencode({name: value for name, value in query.items() if name not in _LIBPQ_ONLY})
    connect_timeout_s = float(query.get("connect_timeout") or 0) or CONNECT_TIMEOUT_S
    path = f'"{check_schema("schema", schema)}", pg_temp'
    server_settings = {"application_name": application, **settings, **options, "search_path": path}
    if "application_name" in query:
        del server_settings["application_name"]
    return {
        "dsn": f"{address}?{kept}" if kept else address,
        "timeout": connect_timeout_s,
        "server_settings": server_settings,
        # A standby can't take a claim. The URL may ask for more ("primary"), never for less.
        "target_session_attrs": "primary" if query.get("target_session_attrs") == "primary" else "read-write",
    }


def _parse_options(text: str) -> dict[str, str]:
    """`-c name=value -c name=value`, and `--name=value`, as libpq's `options` has them."""
    found = {}
    for word in shlex.split(text):
        name, _, value = word.removeprefix("-c").removeprefix("--").partition("=")
        if name:
            found[name.replace("-", "_")] = value
    return found


@contextlib.contextmanager
def connecting(url: str) -> Iterator[None]:
    """`translated`, for attempts to connect. Messages name the server, and nothing secret of the URL."""
    if fault := url_fault(url):
        raise StoreError(f"the database URL is wrong: {fault}")
    server = _server(url)
    with translated(f"connecting to PostgreSQL at {server}" if server else "connecting to PostgreSQL"):
        try:
            yield
        except ValueError as error:  # a malformed port, timeout or quotation
            if isinstance(error, asyncpg.InterfaceError | ConfigError):
                raise
            raise StoreError(f"the database URL is wrong: {error}") from error


def _server(url: str) -> str:
    """The hosts of a URL without faults, with ports; "" if it names none."""
    address, _, query = url.partition("?")
    authority = address.partition("://")[2].partition("/")[0]
    return authority.rpartition("@")[2] or dict(parse_qsl(query)).get("host", "")


async def connect(
    url: str, application: str, settings: dict[str, str] | None = None, *, schema: str = DEFAULT_SCHEMA
) -> Connection:
    """One connection outside any pool. Raises StoreUnavailable or StoreError."""
    with connecting(url):
        arguments = connect_arguments(url, application, settings or {}, schema)
        connection: Connection = await connect_to_newest(**arguments)
        await set_session(connection, arguments)
        await prepare_codecs(connection)
        return connection
