"""Options as variables, and what is said of values that contradict each other."""

import dataclasses
import time
from collections.abc import Iterator

import click
import pytest
from click.testing import Result

from cronring.cli.commands.controller import cluster_settings
from cronring.cli.root import cli
from cronring.cli.variables import known
from cronring.controller.core.settings import ClusterSettings
from tests.unit.cli.conftest import Cronring
from tests.unit.cli.fake_api import FakeApi, job

URL = "postgresql://127.0.0.1:1/x"
NONE_GIVEN = {field.name: None for field in dataclasses.fields(ClusterSettings)}


def options(
    command: click.Command, context: click.Context
) -> Iterator[tuple[click.Command, click.Option, click.Context]]:
    for param in command.params:
        if isinstance(param, click.Option) and param.expose_value:
            yield command, param, context
    for name, each in command.commands.items() if isinstance(command, click.Group) else ():
        yield from options(each, click.Context(each, parent=context, info_name=name))


ALL_OPTIONS = list(options(cli, click.Context(cli, info_name="cronring", auto_envvar_prefix="CRONRING")))
KNOWN = set(known(cli))


def asked_with(asked: Cronring, **environment: str) -> Result:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        return asked("jobs", "list")


@pytest.mark.parametrize(
    ("command", "option", "context"), ALL_OPTIONS, ids=[f"{c.command_path} {o.opts[-1]}" for _, o, c in ALL_OPTIONS]
)
def test_every_option_has_a_variable_of_its_name(
    command: click.Command, option: click.Option, context: click.Context
) -> None:
    flag = max(option.opts, key=len).removeprefix("--").replace("-", "_").upper()
    own = f"{context.auto_envvar_prefix}_{flag}"
    shared = f"CRONRING_{flag}"
    assert not option.name or option.envvar in {own, shared} or (option.envvar is None and option.name.upper() == flag)
    assert str(option.envvar or own) in KNOWN
    assert "env var" not in command.get_help(context), "one paragraph of `cronring --help` says the rule"


# Commands that change something and take no idempotency key, and why.
KEYLESS = {
    **dict.fromkeys(
        ("token create", "runner-grant create", "webhook add"), "they show a secret, which is kept nowhere"
    ),
    **dict.fromkeys(("apply", "jobs import"), "they make many changes"),
    **dict.fromkeys(("sets delete", "workspaces delete"), "repeated, they find nothing any more, and say so"),
    "drill kill-owner": "it lasts as long as its command",
    "import crontab": "it writes files",
    "queues consume": "a lease makes sure of each message",
}


def flags(command: click.Command, *path: str) -> Iterator[tuple[str, set[str]]]:
    """Of each command below it."""
    for name, each in command.commands.items() if isinstance(command, click.Group) else ():
        yield from flags(each, *path, name)
    if not isinstance(command, click.Group):
        yield " ".join(path), {flag for param in command.params for flag in param.opts}


def test_what_changes_one_thing_takes_a_key() -> None:
    keyless = {path for path, given in flags(cli) if "--as" in given and "--idempotency-key" not in given}
    assert keyless == set(KEYLESS)


ORDERS = ("cancel", "delete", "pause", "restore", "resume", "skip-next", "trigger")
KEYED = {  # what they need besides
    "deploy": [__file__], "jobs backfill": ["a.b", "--from", "-2h"], "jobs create": ["a.b", "--name", "n", "--manual"],
    "jobs update": ["a.b", "--retries", "3"], "queues remove": ["q", "1"], "queues replay": ["q", "1"],
    "rollback": ["m"], "undeploy": ["m"],
    **{f"jobs {order}": ["a.b"] for order in ORDERS},
}  # fmt: skip


@pytest.mark.parametrize("path", [path for path, given in flags(cli) if {"--dry-run", "--idempotency-key"} <= given])
def test_a_dry_run_takes_no_key(asked: Cronring, api: FakeApi, path: str) -> None:
    done = asked(*path.split(), *KEYED[path], "--dry-run", "--idempotency-key", "k")
    assert (done.exit_code, api.requests) == (2, [])
    assert "--idempotency-key: a dry run changes nothing" in done.stderr


def test_the_rule_of_variables_is_told(cronring: Cronring) -> None:
    told = " ".join(cronring("--help").stdout.split())
    assert "Every option can be given as an environment variable" in told
    assert all(name in told for name in ("CRONRING_JOBS_LIST_LIMIT", "CRONRING_CONTROLLERS", "NO_COLOR"))


def test_a_variable_that_nobody_reads_is_warned_of(asked: Cronring) -> None:
    done = asked_with(asked, CRONRING_JOBS_LIST_LIMTI="3", CRONRING_CONTROLERS="127.0.0.1:1")
    assert done.exit_code == 0
    assert "CRONRING_JOBS_LIST_LIMTI is set, and no option reads it" in done.stderr
    assert "Did you mean 'CRONRING_JOBS_LIST_LIMIT'?" in done.stderr
    assert "Did you mean 'CRONRING_CONTROLLERS'?" in done.stderr
    known_ones = asked_with(asked, CRONRING_JOBS_LIST_LIMIT="3", CRONRING_OUTPUT="json")
    assert "warning" not in known_ones.stderr


def test_many_of_them_or_long_ones_cost_nothing(asked: Cronring) -> None:
    begun = time.process_time()
    done = asked_with(asked, **{f"CRONRING_{number}_{'X' * 10_000}": "" for number in range(100)})
    assert done.stderr.count("warning") == 6
    assert len(done.stderr) < 2_000
    assert time.process_time() - begun < 5


def test_a_filter_that_leaves_nothing_says_so_and_how_many_there_are(asked: Cronring) -> None:
    done = asked("jobs", "list", "--status", "paused")
    assert (done.exit_code, done.stderr) == (0, "of 2 jobs none matches --status paused\n")
    words = asked("jobs", "list", "status:orphaned", "status:paused", "--label", "a=b", "--label", "c=d")
    assert words.stderr == "of 2 jobs none matches --label a=b --label c=d status:orphaned status:paused\n"
    assert (
        "none matches --failed --since now runner:x"
        in asked("executions", "list", "runner:x", "--failed", "--since", "now").stderr
    )


def test_a_variable_of_an_option_named_by_a_keyword_is_read(cronring: Cronring) -> None:
    done = cronring("next", "Mon", "-n", "1", CRONRING_NEXT_FROM="2027-01-01")
    assert done.stdout.startswith("2027-01-04T00:00:00Z")
    assert "'--for'" in cronring("dev", __file__, CRONRING_DEV_FOR="soon").stderr


def test_settings_that_are_not_given_have_their_defaults() -> None:
    assert cluster_settings(dict(NONE_GIVEN)) == ClusterSettings()
    given = NONE_GIVEN | {"backup_delay_ms": 0.25, "claim_batch": 7}
    assert cluster_settings(given) == ClusterSettings(backup_delay_ms=250, claim_batch=7)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--lease", "1s"], "2 x --lease-renew (1000 ms) must be below --lease (1000 ms)"),
        (["--window", "1s"], "--refetch-interval (60000 ms) must be below --window (1000 ms)"),
        (["--grpc", "nowhere"], "--grpc is 'nowhere'"),
        (["--grpc", "0.0.0.0:7400"], "set --advertise to"),
        (["--name", "a/b"], "--name is 'a/b'"),
        (["--drain-timeout", "2d"], "Invalid value for '--drain-timeout': '2d' is out of range"),
    ],
)
def test_a_controller_refuses_in_the_words_of_its_flags(cronring: Cronring, arguments: list[str], says: str) -> None:
    done = cronring("controller", "--database-url", URL, *arguments)
    assert done.exit_code == 2
    assert says in done.stderr
    assert "_ms" not in done.stderr


@pytest.mark.parametrize("command", [("jobs", "list", "--status"), ("executions", "list", "--outcome")])
def test_a_choice_offers_no_empty_word(cronring: Cronring, command: tuple[str, ...]) -> None:
    assert "''" not in cronring(*command, "nonsense").stderr
    assert "[|" not in cronring(*command[:2], "--help").stdout


def test_jobs_that_a_limit_leaves_out_are_told_of(asked: Cronring, api: FakeApi) -> None:
    api.jobs = [job(f"verb_{number}") for number in range(3)]
    cut = asked("jobs", "list", "-n", "2")
    assert len(cut.stdout.splitlines()) == 1 + 2
    assert "--limit" in cut.stderr
    assert asked("jobs", "list", "-n", "3").stderr == ""
