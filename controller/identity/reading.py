"""The identity file, in TOML: from its text to settings. Every error names file, key, what is wrong and what is right.

Keys that nobody knows are refused: a misspelt `audience` would check nothing.
"""

import tomllib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from cronring.controller.config import ConfigError
from cronring.controller.identity.settings import DEFAULT_LEEWAY_MS, GrantRule, IssuerSettings, LoginSettings
from cronring.schema.duration import DurationError, parse_duration
from cronring.schema.identity import Role
from cronring.schema.nearest import nearest

Settings = TypeVar("Settings")

BYTES_MAX: Final = 1024 * 1024
_ISSUER_KEYS: Final = (
    "name", "issuer", "audience", "jwks_url", "jwks_file", "secret_file", "algorithms", "leeway", "name_claim",
    "grant", "login",
)  # fmt: skip
_GRANT_KEYS: Final = ("claim", "value", "role", "namespace")
_LOGIN_KEYS: Final = ("client_id", "client_secret_file", "scopes")


def read_identity(path: Path) -> tuple[IssuerSettings, ...]:
    """What the file says. Paths in it are relative to its folder. Raises ConfigError."""
    try:
        with path.open("rb") as file:
            text = file.read(BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"the identity file {path} can't be read: {error.strerror}") from None
    if len(text) > BYTES_MAX:
        raise ConfigError(f"the identity file {path} is too large; it must be TOML of 1 MiB at most")
    try:
        values = tomllib.loads(text.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"the identity file {path} is no TOML: {error}") from None
    try:
        return _issuers(values, path.parent)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


class _Table:
    """A table of the file. `where` is its place: `issuer[0].`"""

    def __init__(self, values: object, where: str, keys: tuple[str, ...]) -> None:
        if not isinstance(values, Mapping):
            raise ConfigError(f"{where.rstrip('.')} is {_shown(values)}; it must be a table")
        self._values: Mapping[str, Any] = values
        self.where = where
        for key in values:
            if key not in keys:
                close = nearest(key, keys)
                meant = f"did you mean {close!r}?" if close else f"there are {', '.join(keys)}"
                raise ConfigError(f"{where}{key:.60} is no key that there is; {meant}")

    def text(self, key: str, default: str = "") -> str:
        value = self._values.get(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, 'a text, as "this"')
        return value

    def texts(self, key: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        value = self._values.get(key, default)
        if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
            raise self.wrong(key, 'a list of texts, as ["this"]')
        if key in self._values and not value:
            raise self.wrong(key, "a list of one text or more")
        return tuple(value)

    def tables(self, key: str) -> list[object]:
        value = self._values.get(key, [])
        if not isinstance(value, list):
            raise self.wrong(key, f"a list of tables: [[{(self.where + key).replace('[0]', '')}]]")
        return value

    def get(self, key: str) -> object:
        return self._values.get(key)

    def wrong(self, key: str, right: str) -> ConfigError:
        return ConfigError(f"{self.where}{key} is {_shown(self._values.get(key))}; it must be {right}")

    def placed(self, make: Callable[[], Settings]) -> Settings:
        """What `make` makes; its errors begin with a key of this table, which they name."""
        try:
            return make()
        except ConfigError as error:
            raise ConfigError(f"{self.where}{error}") from None


def _issuers(values: Mapping[str, Any], folder: Path) -> tuple[IssuerSettings, ...]:
    tables = _Table(values, "", ("issuer",)).tables("issuer")
    if not tables:
        raise ConfigError("issuer is missing; there must be one [[issuer]] or more")
    found = tuple(_issuer(_Table(each, f"issuer[{index}].", _ISSUER_KEYS), folder) for index, each in enumerate(tables))
    for key in ("name", "issuer"):
        seen: dict[str, int] = {}
        for index, each in enumerate(found):
            first = seen.setdefault(getattr(each, key), index)
            if first != index:
                raise ConfigError(
                    f"issuer[{index}].{key} is {getattr(each, key)!r}, as issuer[{first}]'s; it must be its own"
                )
    return found


def _issuer(table: _Table, folder: Path) -> IssuerSettings:
    login = table.get("login")
    grants = tuple(_grant(_Table(each, f"{table.where}grant[{index}].", _GRANT_KEYS))
                   for index, each in enumerate(table.tables("grant")))  # fmt: skip
    made = partial(
        IssuerSettings,
        name=table.text("name"),
        issuer=table.text("issuer"),
        audience=table.text("audience"),
        jwks_url=table.text("jwks_url"),
        jwks_file=_file(table, "jwks_file", folder),
        secret_file=_file(table, "secret_file", folder),
        algorithms=table.texts("algorithms"),
        leeway_ms=_leeway_ms(table),
        name_claim=table.text("name_claim", "sub"),
        grants=grants,
        login=None if login is None else _login(_Table(login, f"{table.where}login.", _LOGIN_KEYS), folder),
    )
    return table.placed(made)


def _grant(table: _Table) -> GrantRule:
    role = table.text("role")
    if role not in set(Role):
        raise table.wrong("role", f"one of {', '.join(Role)}")
    return table.placed(
        partial(GrantRule, table.text("value"), Role(role), table.text("namespace"), table.text("claim"))
    )


def _login(table: _Table, folder: Path) -> LoginSettings:
    secret_file = _file(table, "client_secret_file", folder)
    return table.placed(
        partial(LoginSettings, table.text("client_id"), table.texts("scopes", ("openid",)), secret_file)
    )


def _file(table: _Table, key: str, folder: Path) -> Path | None:
    name = table.text(key)
    return folder / name if name else None


def _leeway_ms(table: _Table) -> int:
    text = table.text("leeway", f"{DEFAULT_LEEWAY_MS // 1_000}s")
    if text in {"0", "0s"}:
        return 0
    try:
        return parse_duration(text)
    except DurationError as error:
        raise ConfigError(f"{table.where}leeway is {text!r:.60}; {error}") from None


def _shown(value: object) -> str:
    return "missing" if value is None else f"{value!r:.60}"
