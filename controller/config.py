"""What one controller process is told: its own addresses and database. (What all share: controller/core/settings.py.)

Frozen and checked when made, so that a wrong value stops a controller at its start, by name and bound.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from cronring.schema.address import is_loopback
from cronring.schema.spiffe import DEFAULT_CLUSTER, SpiffeError, check_cluster
from cronring.schema.verb_name import read_verb

PORT_MAX: Final = 65_535
DRAIN_TIMEOUT_S_MAX: Final = 86_400.0
NAME_LENGTH_MAX: Final = 63
CALL_RATE_MAX: Final = 100_000
STREAMS_MAX: Final = 10_000
TRACE_ID: Final = "{trace_id}"  # in the template of a trace's address
TRACE_URL_LENGTH_MAX: Final = 1_000
DEFAULT_SCHEMA: Final = "cronring"
_SCHEMA: Final = re.compile(r"[a-z_][a-z0-9_]{0,39}", re.ASCII)
_ORIGIN: Final = re.compile(r"https://(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?|\[[0-9a-f:.]{2,45}\])(?::[0-9]{1,5})?")
_TRACE_URL: Final = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+[/?#][!-~]*", re.ASCII)
# Nobody can connect to these: a controller that listens there has to be told what it is called.
WILDCARD_HOSTS: Final = frozenset({"", "0.0.0.0", "::", "*"})  # noqa: S104 - not bound # nosec B104


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    """AUTO: for people on a terminal, JSON lines everywhere else."""

    AUTO = "auto"
    CONSOLE = "console"
    JSON = "json"


class MetricsAuth(StrEnum):
    """Who may read /metrics."""

    NONE = "none"  # whoever reaches the port
    TOKEN = "token"  # noqa: S105  # whoever may view all namespaces, by a bearer token


class ConfigError(ValueError):
    """A setting is wrong. The message names it, its value, and what would be right."""


@dataclass(frozen=True, slots=True)
class Address:
    """HOST:PORT. An IPv6 host stands in brackets in the text, and without them here."""

    host: str
    port: int

    @classmethod
    def parse(cls, field: str, text: str) -> "Address":
        """Raises ConfigError, naming `field`. Port 0 means any free one."""
        host, colon, port_text = text.rpartition(":")
        if not colon or (":" in host and not (host.startswith("[") and host.endswith("]"))):
            raise ConfigError(f"{field} is {text!r}; it must be HOST:PORT (an IPv6 host in brackets: [::1]:7400)")
        if not (port_text.isascii() and port_text.isdigit()) or int(port_text) > PORT_MAX:
            raise ConfigError(f"{field} is {text!r}; its port must be a number from 0 to {PORT_MAX}")
        return cls(host.removeprefix("[").removesuffix("]"), int(port_text))

    def bound(self, port: int) -> "Address":
        """With the port that was bound, where any was asked for."""
        return Address(self.host, self.port or port)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def check_schema(field: str, name: str) -> str:
    """The name, if our tables may be in a schema of that name. Raises ConfigError, naming `field`.

    Short, as channels of NOTIFY begin with it. Lower case, so that it is the same name with and without quotes.
    """
    if not _SCHEMA.fullmatch(name) or name.startswith("pg_") or name == "information_schema":
        raise ConfigError(
            f"{field} is {name[:100]!r}; it may have lower-case letters, digits and '_', 40 at most, must begin with a"
            " letter or '_', and not with pg_, which is PostgreSQL's own"
        )
    return name


@dataclass(frozen=True, slots=True)
class ProcessConfig:
    """One controller process. Raises ConfigError when a field is out of its bounds."""

    database_url: str  # any libpq URL, several hosts included
    schema: str = DEFAULT_SCHEMA  # of the database: where our tables are
    grpc_address: str = "127.0.0.1:7400"  # for people and services
    peer_address: str = "127.0.0.1:7500"  # for controllers and runners; with `insecure` they use grpc_address
    http_address: str = "127.0.0.1:7480"
    advertise_address: str = ""  # what clients connect to; "": grpc_address
    advertise_peer_address: str = ""  # what peers and runners connect to; "": peer_address
    certs: Path | None = None  # a folder with ca.crt, tls.crt and tls.key
    public_certs: Path | None = None  # one with tls.crt and tls.key for grpc_address and http_address; None: `certs`
    ca_key: Path | None = None  # what signs certificates of runners that enroll; None: this controller signs none
    identity_file: Path | None = None  # issuers of JWTs, and what these may do; None: there are none
    plain_http: bool = False  # no TLS at http_address, which is a loopback one: a `dev` on somebody's own machine
    public_url: str = ""  # where browsers find the controllers, all of them by one; needed by who logs in at an issuer
    trace_url: str = ""  # where browsers find the trace of an execution, with {trace_id} in its place
    secrets_key: Path | None = None  # keys by which secrets are encrypted in the database; the first one encrypts
    secrets_command: str = ""  # a program that wraps their keys, with its arguments; "": `secrets_key` does
    insecure: bool = False  # plaintext on this machine alone: whoever reaches a port may do everything
    cluster: str = DEFAULT_CLUSTER  # its name in certificates
    join: tuple[str, ...] = ()  # peers to greet besides those of the `controllers` table
    name: str = ""  # beginning of the controller's id; "": the host's name
    drain_timeout_s: float = 30.0
    call_rate: int = 100  # calls a second of one token or user; nobody is counted with `insecure`
    call_burst: int = 500  # and so many at once
    streams: int = 100  # that one of them has open
    cors_origins: tuple[str, ...] = ()  # of pages elsewhere that may ask by REST, with tokens
    metrics_auth: MetricsAuth = MetricsAuth.NONE
    interval_jobs: bool = True  # serve the interval scheduler's contract by HTTP
    interval_jobs_verb: str = ""  # what its jobs run that name no verb: NAMESPACE/MODULE.VERB
    log_level: LogLevel = LogLevel.INFO
    log_format: LogFormat = LogFormat.AUTO

    def __post_init__(self) -> None:
        if not self.database_url.strip():
            raise ConfigError(
                "database_url is empty; set --database-url or CRONRING_DATABASE_URL to a PostgreSQL URL,"
                " as postgresql://user:password@host/database"
            )
        check_schema("schema", self.schema)
        Address.parse("http_address", self.http_address)
        self._check_public_url()
        self._check_trace_url()
        self._check_plain_http()
        for origin in self.cors_origins:
            if not _ORIGIN.fullmatch(origin):
                raise ConfigError(
                    f"cors_origins is {origin!r:.200}; it must be https://HOST or https://HOST:PORT, in lower case, and"
                    " nothing else; give it once for each"
                )
        self._check_interval_jobs()
        self._check_advertised("grpc_address", "advertise_address", "clients")
        self._check_advertised("peer_address", "advertise_peer_address", "other controllers and runners")
        self._check_trust()
        for peer in self.join:
            self._require_reachable("join", Address.parse("join", peer))
        if not 0 <= self.drain_timeout_s <= DRAIN_TIMEOUT_S_MAX:
            raise ConfigError(
                f"drain_timeout_s is {self.drain_timeout_s}; it must be from 0 to {DRAIN_TIMEOUT_S_MAX:g}"
            )
        for field, highest in (("call_rate", CALL_RATE_MAX), ("call_burst", CALL_RATE_MAX), ("streams", STREAMS_MAX)):
            if not 1 <= getattr(self, field) <= highest:
                raise ConfigError(f"{field} is {getattr(self, field)}; it must be from 1 to {highest}")
        if len(self.name) > NAME_LENGTH_MAX or any(not (c.isalnum() or c in "._-") for c in self.name):
            raise ConfigError(
                f"name is {self.name!r}; it may have letters, digits, '.', '_' and '-', {NAME_LENGTH_MAX} at most"
            )

    def console_url(self, http_address: str) -> str:
        """Where browsers find the console of a controller that listens there."""
        scheme = "http" if self.insecure or self.plain_http else "https"
        return self.public_url or f"{scheme}://{http_address}"

    def _check_advertised(self, field: str, advertised_field: str, whom: str) -> None:
        address, advertised = str(getattr(self, field)), str(getattr(self, advertised_field))
        if advertised:
            self._require_reachable(advertised_field, Address.parse(advertised_field, advertised))
        elif Address.parse(field, address).host in WILDCARD_HOSTS:
            raise ConfigError(
                f"{field} is {address!r}, where nobody can connect to;"
                f" set {advertised_field} to the HOST:PORT that {whom} use"
            )

    def _check_public_url(self) -> None:
        """An origin alone: what issuers are told must not depend on what anybody writes into a request."""
        if self.public_url and not _ORIGIN.fullmatch(self.public_url):
            raise ConfigError(
                f"public_url is {self.public_url!r:.200}; it must be https://HOST or https://HOST:PORT, in lower case,"
                " and nothing else"
            )

    def _check_trace_url(self) -> None:
        """Pages link to it, so it must not be `javascript:`; and no trace may choose the host."""
        url = self.trace_url
        if url and not (_TRACE_URL.fullmatch(url) and TRACE_ID in url and len(url) <= TRACE_URL_LENGTH_MAX):
            raise ConfigError(
                f"trace_url is {url!r:.200}; it must be like https://HOST/trace/{TRACE_ID}: http or https, {TRACE_ID}"
                f" behind the host, no blanks, {TRACE_URL_LENGTH_MAX:,} characters at most"
            )

    def _check_plain_http(self) -> None:
        if not self.plain_http:
            return
        if self.insecure:
            raise ConfigError("plain_http is set beside insecure, which has no TLS anyway; leave one of them out")
        if not is_loopback(Address.parse("http_address", self.http_address).host):
            raise ConfigError(
                f"plain_http is set, and http_address is {self.http_address!r}: others would read passwords on the way;"
                " listen at 127.0.0.1, or leave it out"
            )

    def _check_interval_jobs(self) -> None:
        if not self.interval_jobs_verb:
            return
        if not self.interval_jobs:
            raise ConfigError("interval_jobs_verb is set beside no_interval_jobs; leave one of them out")
        try:
            read_verb(self.interval_jobs_verb)
        except ValueError as error:
            raise ConfigError(f"interval_jobs_verb is wrong: {error}") from None

    def _check_trust(self) -> None:
        """Plaintext is for this machine alone; everybody else must be known."""
        try:
            check_cluster(self.cluster)
        except SpiffeError as error:
            raise ConfigError(f"cluster: {error}") from error
        if self.certs is not None:
            if self.insecure:
                raise ConfigError("insecure is set beside certs; leave one of them out")
            return
        if self.ca_key is not None:
            raise ConfigError("ca_key is set without certs; set certs to the folder with ca.crt, tls.crt and tls.key")
        if self.metrics_auth is MetricsAuth.TOKEN:
            raise ConfigError("metrics_auth is token, and with insecure there are no tokens; leave one of them out")
        if self.cors_origins:
            raise ConfigError("cors_origins is set with insecure, where pages need no token; leave one of them out")
        if not self.insecure:
            raise ConfigError(
                "certs is not set: set it to a folder with ca.crt, tls.crt and tls.key (`cronring certs init` makes"
                " them; docs/security.md has all steps). Or set insecure, for plaintext on this machine alone"
            )
        for field in ("grpc_address", "http_address", "advertise_address"):
            address = str(getattr(self, field))
            if address and not is_loopback(Address.parse(field, address).host):
                raise ConfigError(
                    f"{field} is {address!r}, which other machines can reach, and insecure would let all of them in;"
                    " set certs to a folder with ca.crt, tls.crt and tls.key instead (docs/security.md)"
                )

    @staticmethod
    def _require_reachable(field: str, address: Address) -> None:
        if address.host in WILDCARD_HOSTS or address.port == 0:
            raise ConfigError(f"{field} is '{address}'; it must be a HOST:PORT that others can connect to")
