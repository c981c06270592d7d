"""`cronring controller`: one replica."""

import dataclasses
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from cronring.cli.options import (
    DAY_S,
    Addresses,
    Duration,
    count,
    database_option,
    log_options,
    option,
    require_database_url,
    schema_option,
    stop_on_eof_option,
)
from cronring.schema.duration import measured

if TYPE_CHECKING:
    from cronring.controller.core.settings import ClusterSettings

FOLDER: Final = click.Path(exists=True, file_okay=False, path_type=Path)
# What a ClusterSettings field is for, where its name alone does not tell.
_MEANINGS = {
    "backup_delay_ms": "How long after run_at a slot's backup looks whether its primary failed.",
    "refetch_interval_ms": "How often the jobs of the own slots are read anew.",
    "window_ms": "How far ahead jobs are read.",
    "lease_ms": "A controller that has not renewed for so long claims nothing.",
    "lease_renew_ms": "How often the lease is renewed.",
    "lease_margin_ms": "How much earlier than PostgreSQL a controller steps down.",
    "runner_beat_ms": "How often runners give a sign of life.",
    "runner_fence_ms": "A runner without contact for so long stops its runs.",
    "runner_lost_after_ms": "When a silent runner's executions are declared lost.",
    "runner_grace_ms": "How long a due tick waits for a runner before it is skipped (no_runner).",
    "timeout_ms": "Soft timeout of a job that states none.",
    "hard_timeout_grace_ms": "How long after the soft timeout an execution that nobody ended is swept.",
    "cancel_grace_ms": "How long a cancelled run has to stop by itself before its process is killed.",
    "default_jitter": "Jitter of jobs that state none, like auto: their starts are delayed. Counts at deployment.",
    "claim_batch": "At most so many claims in one statement.",
    "claims_in_flight": "At most so many claim statements at once.",
    "end_batch": "At most so many ends in one statement.",
    "ends_in_flight": "At most so many end statements at once.",
    "probe_interval_ms": "How often SWIM probes a peer.",
    "probe_timeout_ms": "How long a probe waits for its answer.",
    "suspicion_multiplier": "SWIM's suspicion timeout, in probe intervals and by the size of the cluster.",
    "indirect_probes": "How many peers are asked to probe one that did not answer.",
    "sync_interval_ms": "How often two members exchange their whole views.",
    "history_days": "Executions are kept for so many days, or the newest of --history-runs if those reach further.",
    "history_runs": "How many of its newest executions each job keeps, however old.",
    "audit_log_days": "Rows of the audit log are kept for so many days. Export them before that.",
    "activation_retry_ms": "How often a retry, manual run or backfill whose job runs elsewhere is tried, at least.",
}


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """A flag for each field of ClusterSettings: `backup_delay_ms` is --backup-delay DURATION."""
    from cronring.controller.core.settings import ClusterSettings

    for field in reversed(dataclasses.fields(ClusterSettings)):
        in_time, in_words = field.name.endswith("_ms"), isinstance(field.default, str)
        flag = "--" + field.name.removesuffix("_ms").replace("_", "-")
        shown = measured(field.default) if in_time else f"{field.default}"
        kind: click.ParamType[Any] = Duration() if in_time else click.STRING if in_words else count()
        meaning = _MEANINGS[field.name]
        command = option(flag, field.name, type=kind, help=f"{meaning}  [default: {shown}; equal on all]")(command)
    return command


@click.command()
@database_option
@schema_option
@option("--grpc", "grpc_address", default="127.0.0.1:7400", show_default=True, metavar="HOST:PORT",
        help="Where people and services connect to: TLS, and bearer tokens.")  # fmt: skip
@option("--peer", "peer_address", default="127.0.0.1:7500", show_default=True, metavar="HOST:PORT",
        help="Where other controllers and runners connect to, by their certificates.")  # fmt: skip
@option("--http", "http_address", default="127.0.0.1:7480", show_default=True, metavar="HOST:PORT",
        help="REST (/api/), logins (/login), health (/healthz, /readyz) and metrics (/metrics).")  # fmt: skip
@option("--advertise", "advertise_address", default="", metavar="HOST:PORT",
        help="The address that clients use, where it differs from --grpc (0.0.0.0, NAT).")  # fmt: skip
@option("--advertise-peer", "advertise_peer_address", default="", metavar="HOST:PORT",
        help="The address that others use, where it differs from --peer.")  # fmt: skip
@option("--certs", type=FOLDER, metavar="DIR",
        help="A folder with ca.crt, tls.crt and tls.key: who this is. `cronring certs` makes them.")  # fmt: skip
@option("--public-certs", type=FOLDER, metavar="DIR",
        help="A folder whose certificate --grpc and --http show instead.  [default: --certs]")  # fmt: skip
@option("--ca-key", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
        help="The CA's key: then runners with a join token get their certificates here.")  # fmt: skip
@option("--identity-file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
        help="Issuers of JWTs, and what their holders may do: docs/identity.md.")  # fmt: skip
@option("--plain-http", is_flag=True,
        help="No TLS on --http, which has to be at 127.0.0.1: for a cluster on your own machine.")  # fmt: skip
@option("--public-url", default="", metavar="URL",
        help="Where browsers find the controllers: https://HOST:PORT. Issuers send people back there.")  # fmt: skip
@option("--trace-url", default="", metavar="TEMPLATE",
        help="Where browsers find the trace of an execution, as https://HOST/trace/{trace_id}.")  # fmt: skip
@option("--secrets-key", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
        help="Keys that encrypt secrets in the database. `cronring secrets-key` makes it; equal on all.")  # fmt: skip
@option("--secrets-command", default="", metavar="COMMAND",
        help="A program that wraps their keys by a KMS: docs/security.md. It goes before --secrets-key.")  # fmt: skip
@option("--cluster", default="cronring", show_default=True, metavar="NAME", help="The cluster's name in certificates.")
@option("--insecure", is_flag=True,
        help="Plaintext, and no tokens: everything on --grpc, for this machine alone.")  # fmt: skip
@option("--join", type=Addresses(), default=(), help="Controllers to greet. Others are found in PostgreSQL anyway.")
@option("--name", default="", help="Begins the controller's id.  [default: the host's name]")
@option("--drain-timeout", type=Duration(0, DAY_S), default="30s", show_default=True,
        help="On SIGTERM: how long runs may go on before others adopt them.")  # fmt: skip
@option("--call-rate", type=count(), default=100, show_default=True,
        help="Calls a second that one token or user may make here. More are told when to come again.")  # fmt: skip
@option("--call-burst", type=count(), default=500, show_default=True, help="How many of these it may make at once.")
@option("--streams", type=count(), default=100, show_default=True,
        help="Streams that one of them may have open here: watches, outputs that are followed.")  # fmt: skip
@option("--cors-origin", "cors_origins", multiple=True, metavar="URL",
        help="A site, as https://HOST:PORT, whose pages may ask by REST with a token. Once for each.")  # fmt: skip
@option("--metrics-auth", type=click.Choice(["none", "token"]), default="none", show_default=True,
        help="token: /metrics asks for a token that may view all namespaces.")  # fmt: skip
@option("--no-interval-jobs", is_flag=True,
        help="Don't serve the interval scheduler's REST contract under /api/v1.")  # fmt: skip
@option("--interval-jobs-verb", default="", metavar="[NAMESPACE/]MODULE.VERB",
        help="The verb, and namespace, of that contract's jobs that name no verb: docs/interval-jobs.md.",
        )  # fmt: skip
@log_options
@stop_on_eof_option
@cluster_options
def controller(database_url: str | None, stop_on_eof: bool, **values: Any) -> None:
    """Run one controller: a replica beside PostgreSQL. Start a few; they find each other through the database.

    On SIGTERM it stops claiming, hands its slots over, lets runs finish, and leaves. Exit codes: 0 left; 1 failed, the
    log says why (an address in use, tables of another release, ...); 2 wrong usage.

    \b
    Examples:
      export CRONRING_DATABASE_URL=postgresql://cronring@db.internal/cronring
      cronring controller --certs /etc/cronring --grpc 10.0.0.1:7400 \\
        --peer 10.0.0.1:7500 --http 10.0.0.1:7480
      cronring controller --insecure                for a try on this machine
    """
    url = require_database_url(database_url)
    from cronring.cli.loading import load_structlog

    load_structlog()
    from cronring.cli.parent import watch_parent
    from cronring.controller.config import ConfigError, LogFormat, LogLevel, MetricsAuth, ProcessConfig
    from cronring.controller.core.settings import SettingsError
    from cronring.controller.main import run

    watch_parent(stop_on_eof)
    try:
        settings = cluster_settings(values)
        values["drain_timeout_s"] = values.pop("drain_timeout")
        values["interval_jobs"] = not values.pop("no_interval_jobs")
        values["metrics_auth"] = MetricsAuth(values["metrics_auth"])
        values["log_level"] = LogLevel(values["log_level"])
        values["log_format"] = LogFormat(values["log_format"])
        config = ProcessConfig(database_url=url, **values)
    except (ConfigError, SettingsError) as error:
        raise click.UsageError(_in_flags(str(error))) from error
    try:
        code = run(config, settings)
    except ConfigError as error:
        raise click.UsageError(_in_flags(str(error))) from error
    sys.exit(code)


def cluster_settings(values: dict[str, Any]) -> "ClusterSettings":
    """Takes the fields of ClusterSettings out of `values`; those not given (None) have their defaults."""
    from cronring.controller.core.settings import ClusterSettings

    names = [field.name for field in dataclasses.fields(ClusterSettings)]
    given = {name: value for name in names if (value := values.pop(name)) is not None}
    settings: dict[str, Any] = {name: _setting(name, value) for name, value in given.items()}
    return ClusterSettings(**settings)


def _setting(name: str, value: float | str) -> int | str:
    if isinstance(value, str):
        return value
    return round(value * 1000) if name.endswith("_ms") else int(value)


def _in_flags(message: str) -> str:
    """What the configuration says of its fields, in the words that the user gave them with."""
    flags = {param.name: param.opts[0] for param in controller.params if param.name} | {
        "drain_timeout_s": "--drain-timeout"
    }
    message = re.sub(r"(_ms) \((\d+)\)", r"\1 (\2 ms)", message)
    # A field that is an everyday word (name, join) is only ever spoken of at the beginning.
    fields = "|".join(sorted((name for name in flags if "_" in name), key=len, reverse=True))
    return re.sub(rf"^\w+\b|\b(?:{fields})\b", lambda found: flags.get(found[0], found[0]), message)
