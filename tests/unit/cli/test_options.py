"""Options as variables, and what is said of values that contradict each other."""

import dataclasses
from collections.abc import Iterator

import click
import pytest

from controller.core.settings import ClusterSettings
from cronring.cli.commands.controller import cluster_settings
from cronring.cli.main import cli
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


@pytest.mark.parametrize(
    ("command", "option", "context"), ALL_OPTIONS, ids=[f"{c.command_path} {o.opts[-1]}" for _, o, c in ALL_OPTIONS]
)
def test_every_option_has_a_variable_of_its_name_which_help_tells(
    command: click.Command, option: click.Option, context: click.Context
) -> None:
    flag = max(option.opts, key=len).removeprefix("--").replace("-", "_").upper()
    own = f"{context.auto_envvar_prefix}_{flag}"
    shared = f"CRONRING_{flag}"
    assert not option.name or option.envvar in {own, shared} or (option.envvar is None and option.name.upper() == flag)
    assert str(option.envvar or own) in "".join(command.get_help(context).split())


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
        (["--drain-timeout", "2d"], "--drain-timeout is 172800"),
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
