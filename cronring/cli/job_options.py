"""Options of `cronring jobs create` and `update`: when a job ticks, what it is given, how it is labelled."""

import contextlib
import getpass
import socket
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from cronring.cli.failures import Failure
from cronring.cli.instants import instant_option, resolved
from cronring.cli.options import Duration, OrUnset
from cronring.cli.schedules import pointed
from cronring.schema.keys import VerbName

Command = TypeVar("Command", bound=Callable[..., Any])


def queue_options(command: Command) -> Command:
    """The other kind of target."""
    options = (
        click.option("--queue", default="", metavar="NAME", help="In place of VERB: each tick is a message there."),
        click.option(
            "--workspace",
            default="",
            metavar="NAME",
            help="The queue's part for one tenant: its messages are taken in order.",
        ),
        click.option("--await", is_flag=True, help="A tick ends when its consumer says so: --completes consumed."),
    )
    for option in reversed(options):
        command = option(command)
    return command


class VerbParam(click.ParamType[VerbName]):
    """module.verb, or namespace/module.verb."""

    name = "VERB"

    def convert(self, value: str | VerbName, param: click.Parameter | None, ctx: click.Context | None) -> VerbName:
        if isinstance(value, VerbName):
            return value
        namespace, _, short = value.rpartition("/")
        module, dot, verb = short.partition(".")
        if not (module and dot and verb) or ":" in verb:
            self.fail(f"{value!r} names no verb; write MODULE.VERB, or NAMESPACE/MODULE.VERB", param, ctx)
        return VerbName(namespace or "default", module, verb)


class Label(click.ParamType[tuple[str, str]]):
    """KEY=VALUE."""

    name = "KEY=VALUE"

    def convert(
        self, value: str | tuple[str, str], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        key, equals, text = value.partition("=")
        if not key or not equals:
            self.fail(f"{value!r} is no label; write KEY=VALUE, like team=billing", param, ctx)
        return key, text


class Payload(click.ParamType[str]):
    """JSON itself, or @FILE to read it from there (@- for standard input). What it may be, the controllers say."""

    name = "JSON|@FILE"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not value.startswith("@"):
            return value
        try:
            return sys.stdin.read() if value == "@-" else Path(value[1:]).read_text("utf-8")
        except OSError as error:
            self.fail(f"{value[1:]}: {error.strerror}", param, ctx)
        except UnicodeDecodeError as error:
            self.fail(f"{value[1:]}: it is no UTF-8 text (byte {error.start})", param, ctx)


payload_option = click.option(
    "--payload", type=Payload(), help="What its verb is given; @FILE reads it, @- standard input."
)


def job_options(command: Command) -> Command:
    """When it ticks, and everything else but policies."""
    return _options(command, "--label")


def changed_options(command: Command) -> Command:
    """The same of jobs that are there: --label says which ones there, so one is set by --set-label."""
    return _options(command, "--set-label")


def _options(command: Command, label: str) -> Command:
    options = (
        click.option("--cron", metavar="PATTERN", help='By a pattern, like "0 9 * * 1-5".'),
        click.option("--every", metavar="DURATION", help="By an interval, like 30m."),
        instant_option("--at", zone="--timezone's", help="Once, at this instant"),
        click.option("--manual", is_flag=True, help="Only when triggered."),
        instant_option("--anchor", zone="--timezone's", help="Where an interval counts from; else when it is set"),
        payload_option,
        click.option(label, type=Label(), multiple=True, help="For your own sorting; may be repeated."),
        click.option("--timeout", type=OrUnset(Duration()), help="Soft timeout of a run.  [the verb's]"),
        click.option("--on-disconnect", type=click.Choice(["stop", "finish"]),
                     help="What a run does when its runner has lost all controllers.  [the verb's]"),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def schedule_text(cron: str | None, every: str | None, at: str | None, manual: bool, zone: str) -> str | None:
    """The schedule that --cron, --every, --at or --manual gives; None without any. Raises UsageError for several."""
    given = [name for name, value in (("cron", cron), ("every", every), ("at", at), ("manual", manual)) if value]
    if len(given) > 1:
        raise click.UsageError(f"--{given[0]} and --{given[1]} exclude each other; give one of them")
    if at == "now":
        return "at now"  # by the cluster's clock, not by this machine's
    if at:
        return f"at {resolved(at, zone):%Y-%m-%dT%H:%M:%SZ}"
    if every:
        return _interval(every)
    return "manual" if manual else cron


def _interval(amount: str) -> str:
    """Judged here, as the controllers would count characters from the word `every` on. Raises Failure."""
    from cronring.schema.schedule import ScheduleError, check_interval

    try:
        return check_interval(amount)
    except ScheduleError as error:
        raise Failure(f"--every: {pointed(amount, error)}") from error


def timeout_ms(timeout: float | str | None) -> int | None:
    return round(float(timeout) * 1000) if timeout else None


def labels_of(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Raises Failure for a key given twice."""
    labels: dict[str, str] = {}
    for key, value in pairs:
        if key in labels:
            raise Failure(f"the label {key!r} is given twice")
        labels[key] = value
    return labels


def whoami() -> str:
    """Who asks, as it is kept with what they did; "" where the system doesn't know."""
    with contextlib.suppress(OSError, KeyError):
        return f"{getpass.getuser()}@{socket.gethostname()}"
    return ""
