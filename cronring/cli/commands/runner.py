"""`cronring runner`: hosts modules."""

import os
import sys
from pathlib import Path
from typing import Any

import click

from cronring.cli.options import DAY_S, Duration, addresses_option, log_options, option, stop_on_eof_option
from cronring.cli.printing import say
from cronring.runner.config import ASYNC_RUNS_MAX, STDIN, SYNC_CHILDREN_MAX, RunnerConfig
from cronring.runner.run_as import find_user
from cronring.trust.names import SECRETS, without_secrets
from cronring.trust.prctl import gain_nothing_by_exec


def _shed_secrets() -> None:
    """Begin anew without what a runner needs no more than its verbs do.

    They inherit its environment, and may read what their parent began with (/proc/PPID/environ): to take a variable
    out is not enough.
    """
    given = sorted(SECRETS.intersection(os.environ))
    if given:
        say(f"a runner needs no {', '.join(given)}: it starts anew without, as its verbs could read that", err=True)
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], without_secrets())  # noqa: S606 - us # nosec B606


_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_FILE_OR_STDIN = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@addresses_option
@option("--certs", type=_FOLDER, metavar="DIR",
        help="A folder with ca.crt, tls.crt and tls.key; --controllers are --peer addresses then.")  # fmt: skip
@option("--join-token-file", type=_FILE_OR_STDIN, metavar="FILE",
        help="A join token (-: stdin), to get a certificate by. --controllers are --grpc addresses then.")  # fmt: skip
@option("--ca", type=_FILE, metavar="FILE", help="The cluster's CA, beside --join-token-file.")
@option("--cluster", default="cronring", show_default=True, metavar="NAME", help="The cluster's name in certificates.")
@option("--insecure", is_flag=True, help="Plaintext, to controllers on this machine that run with --insecure.")
@option("--run-as", metavar="USER[:GROUP]",
        help="The user that verbs run as, so that they can't read the runner's keys. The runner must be root, or have "
             "CAP_SETUID, CAP_SETGID and CAP_KILL.")  # fmt: skip
@option("--python", metavar="PATH", help="The interpreter that runs the verbs, with their packages.  [default: this]")
@option("--namespace", default="default", show_default=True, help="Where the modules' jobs live.")
@option("--sync-children", type=click.IntRange(1, SYNC_CHILDREN_MAX),
        help="How many sync verbs of one module run at once.  [default: the CPUs, at least 4]")  # fmt: skip
@option("--async-runs", type=click.IntRange(1, ASYNC_RUNS_MAX),
        help="How many async verbs of one module run at once.  [default: 4096]")  # fmt: skip
@option("--drain-timeout", type=Duration(0, DAY_S), default="30s", show_default=True,
        help="On SIGTERM: how long runs may go on before they are cancelled.")  # fmt: skip
@log_options
@stop_on_eof_option
def runner(files: tuple[Path, ...], log_level: str, log_format: str, stop_on_eof: bool, **values: Any) -> None:
    """Host the modules in FILES: register them as the active versions, and run their verbs in child processes.

    A runner connects to every controller, those that it was not told of included. Start as many as you like.
    What is due and has no room on any of them waits in the database, and runs as soon as there is.

    Verbs run as the runner's own user, who can read --certs and --join-token-file. With --run-as they can't.

    Exit codes: 0 stopped; 1 a file is no valid module, or no controller lets it in; 2 wrong usage. It is 3 if results
    were left that no controller had acknowledged when the drain timeout was over.

    \b
    Examples:
      cronring runner billing.py --controllers 10.0.0.1:7400,10.0.0.2:7400 \\
        --join-token-file token --ca ca.crt
      cronring runner billing.py --controllers 10.0.0.1:7500 \\
        --certs certs/billing --run-as billing
      cronring runner billing.py --insecure --python ./billing-venv/bin/python
    """
    from cronring.cli.parent import watch_parent
    from cronring.runner.describe import DescribedFiles

    watch_parent(stop_on_eof)
    _shed_secrets()
    try:
        config = _config(files, values, stop_on_eof)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if config.run_as is not None:
        gain_nothing_by_exec()
    described = DescribedFiles(config.files, config.interpreter, config.namespace, config.run_as)
    # These take as long as what the children are doing meanwhile.
    from cronring.cli.loading import load_structlog

    load_structlog()
    from cronring.controller.config import LogFormat, LogLevel
    from cronring.controller.runtime.log_format import set_up_logging
    from cronring.runner.main import run

    set_up_logging(LogLevel(log_level), LogFormat(log_format))
    sys.exit(run(config, described))


def _config(files: tuple[Path, ...], values: dict[str, Any], stop_on_eof: bool) -> RunnerConfig:
    """What is not given has its default there. Raises ValueError, with the flag in its message."""
    given = {name: value for name, value in values.items() if value is not None}
    if "run_as" in given:
        given["run_as"] = find_user(given["run_as"])
    config = RunnerConfig(files=files, **given)
    if stop_on_eof and config.join_token_file == STDIN:
        raise ValueError("--join-token-file -: with --stop-on-eof nothing is read from there; give a file")
    return config
