"""Commands through click, over real gRPC: tables, JSON, errors, exit codes."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from cronring.cli import completion
from cronring.cli.root import cli
from cronring.cli.variables import SHARED, known
from cronring.controller.errors import StoreUnavailable
from cronring.protos.cronring.v1 import limits_pb2
from tests.support.waiting import TIMEOUT_S
from tests.unit.cli.conftest import Cronring
from tests.unit.cli.fake_api import FakeApi, job

INSTANT = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z$")
JOB_KEYS = {"key", "module", "verb", "schedule", "status", "next_execution", "last_outcome"}
EXECUTION_KEYS = {
    "id", "job", "tick", "run_at", "started_at", "ended_at", "outcome", "attempt", "trigger", "controller", "runner",
    "lateness_ms",
}  # fmt: skip


def test_jobs_list_is_aligned_in_a_pipe(asked: Cronring) -> None:
    done = asked("jobs", "list")
    assert done.exit_code == 0
    heading, *rows = done.stdout.splitlines()
    assert heading.split()[:3] == ["JOB", "SCHEDULE", "STATUS"]
    assert len(rows) == 2
    assert {row.index("*/5 * * * *") for row in rows} == {heading.index("SCHEDULE")}
    assert "\x1b" not in done.stdout


def test_jobs_list_json(asked: Cronring) -> None:
    rows = json.loads(asked("jobs", "list", "-o", "json").stdout)
    assert [row["key"] for row in rows] == ["billing.close_month", "billing.refresh"]
    assert rows[0].keys() >= JOB_KEYS
    assert rows[0]["next_execution"] == "2026-11-21T08:05:00Z"
    assert rows[0]["last_started_at"] == "2026-11-21T08:00:00.003000Z"


def test_jobs_list_passes_its_filter_and_limit(asked: Cronring, api: FakeApi) -> None:
    api.jobs = [job(f"verb_{number}") for number in range(30)]
    api.page_limit = 7
    assert len(json.loads(asked("jobs", "list", "-n", "20", "-o", "json").stdout)) == 20
    assert json.loads(asked("jobs", "list", "--status", "paused", "--module", "m", "-o", "json").stdout) == []
    assert (list(api.requests[-1].filter.statuses), api.requests[-1].filter.module) == (["paused"], "m")


def test_no_rows_leave_stdout_clean(asked: Cronring, api: FakeApi) -> None:
    api.jobs = []
    done = asked("jobs", "list")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "no jobs" in done.stderr


def test_executions_list_json(asked: Cronring) -> None:
    rows = json.loads(asked("executions", "list", "-o", "json").stdout)
    assert [row["id"] for row in rows] == [5, 4, 3, 2, 1]
    for row in rows:
        assert row.keys() >= EXECUTION_KEYS
        assert all(INSTANT.match(row[name]) for name in ("tick", "run_at", "started_at", "ended_at"))
    assert (rows[0]["lateness_ms"], rows[0]["outcome"]) == (2.5, "completed")


def test_executions_list_filters(asked: Cronring, api: FakeApi) -> None:
    arguments = ["--job", "billing.refresh", "--outcome", "failed", "--since", "2026-11-21"]
    assert asked("executions", "list", *arguments).exit_code == 0
    where = api.requests[-1].filter
    assert (where.job, list(where.outcomes), where.since.ToJsonString()) == (
        "billing.refresh",
        ["failed"],
        "2026-11-21T00:00:00Z",
    )
    bad = asked("executions", "list", "--since", "yesterday")
    assert bad.exit_code == 2
    assert "2026-03-29T00:30:00Z" in bad.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["jobs", "get", "billing.refresh"], ["every 5 minutes", "slot", "skipped ticks"]),
        (["executions", "get", "3"], ["billing.refresh", "output:", "hello"]),
        (["executions", "list"], ["2.5ms", "498ms", "controller-1"]),
        (["deployments", "list"], ["billing-1", "yes"]),
        (["deployments", "get", "billing-1"], ["module billing {", "ab12"]),
        (
            ["deployments", "compare", "billing-1", "--from", "billing-0"],
            ["from billing-0, to billing-1", "refresh", "144", "timeout", "2 jobs stay as they are"],
        ),
        (["deployments", "compare", "billing-1"], ["from nothing, to billing-1"]),
        (["cluster", "members"], ["controller-1 *", "50.0%", "ring d1e9", "+0.4ms"]),
        (["cluster", "ring"], ["controller-2", "1 slots have no owner"]),
        (["cluster", "owners", "billing.refresh"], ["slot", "controller-1", "nobody"]),
        (["cluster", "runners"], ["runner-1", "alive", "8 sync, 4,096 async", "billing-1"]),
        (["undeploy", "billing", "--yes"], ["billing-1 is no longer active", "removed: billing.refresh"]),
    ],
)
def test_what_people_read(asked: Cronring, arguments: list[str], words: list[str]) -> None:
    done = asked(*arguments)
    assert done.exit_code == 0, done.stderr
    assert [word for word in words if word not in done.stdout] == []


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (["jobs", "get", "billing.refresh"], dict),
        (["executions", "get", "3"], dict),
        (["deployments", "list"], list),
        (["deployments", "get", "billing-1"], dict),
        (["deployments", "compare", "billing-1"], dict),
        (["cluster", "members"], list),
        (["cluster", "ring"], dict),
        (["cluster", "owners", "billing.refresh"], dict),
        (["cluster", "runners"], list),
        (["undeploy", "billing-1", "--yes"], dict),
    ],
)
def test_json_is_an_array_for_lists_and_an_object_for_one(asked: Cronring, arguments: list[str], kind: type) -> None:
    assert isinstance(json.loads(asked(*arguments, "-o", "json").stdout), kind)


@pytest.mark.parametrize(
    ("arguments", "nearest"),
    [
        (["jobs", "get", "billing.refesh"], "Did you mean 'billing.refresh'?"),
        (["cluster", "owners", "biling.close_month"], "Did you mean 'billing.close_month'?"),
        (["deployments", "get", "billing-2"], "Did you mean 'billing-1'?"),
        (["undeploy", "biling"], "Did you mean 'billing'"),
        (["jobs", "get", "zzz"], "`cronring jobs list` shows all 2"),
    ],
)
def test_unknown_names_suggest_the_nearest(asked: Cronring, arguments: list[str], nearest: str) -> None:
    done = asked(*arguments)
    assert done.exit_code == 1
    assert nearest in done.stderr
    assert done.stdout == ""


def test_unknown_commands_and_options_suggest_the_nearest(cronring: Cronring) -> None:
    assert "jobs" in cronring("job").stderr
    assert "--limit" in cronring("jobs", "list", "--limt", "3").stderr
    assert cronring("job").exit_code == 2


def of_tree(context: click.Context) -> Iterator[click.Context]:
    yield context
    if isinstance(context.command, click.Group):
        for name, command in context.command.commands.items():
            yield from of_tree(click.Context(command, context, name, terminal_width=80, max_content_width=80))


def test_no_help_is_wider_than_a_terminal() -> None:
    root = click.Context(cli, info_name="cronring", terminal_width=80, max_content_width=80)
    helps = {context.command_path: context.get_help() for context in of_tree(root)}
    assert len(helps) > 60
    assert [(path, line) for path, text in helps.items() for line in text.splitlines() if len(line) > 80] == []


def test_a_command_without_its_group_is_told_the_group(cronring: Cronring) -> None:
    done = cronring("trigger", "billing.close_month")
    assert done.exit_code == 2
    assert "No such command 'trigger'. Did you mean `cli jobs trigger`?" in done.stderr


def test_unreachable(cronring: Cronring) -> None:
    done = cronring("jobs", "list", "--controllers", "127.0.0.1:1,127.0.0.1:2")
    assert done.exit_code == 3
    assert "127.0.0.1:1" in done.stderr
    assert "CRONRING_CONTROLLERS" in done.stderr
    assert "Traceback" not in done.stderr


def test_database_away(asked: Cronring, api: FakeApi) -> None:
    api.refusal = StoreUnavailable("connection refused")
    done = asked("jobs", "list")
    assert done.exit_code == 3
    assert "the controllers answer, but PostgreSQL is away" in done.stderr
    assert "no controller answered" not in done.stderr
    assert all(words in done.stderr for words in ("still works:", "to do:", "cronring doctor"))


@pytest.mark.parametrize("address", ["here", "here:", "here:0", ":7400", "a:1,b", ","])
def test_addresses_are_checked(cronring: Cronring, address: str) -> None:
    done = cronring("jobs", "list", "--controllers", address)
    assert done.exit_code == 2
    assert "HOST:PORT" in done.stderr


def test_watch_prints_json_lines(api: FakeApi) -> None:
    command = [sys.executable, "-m", "cronring.cli.main", "jobs", "watch", "-o", "json", "--controllers", api.address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        lines = [json.loads(watching.stdout.readline()) for _ in range(3)]
        watching.send_signal(2)
        assert watching.wait(timeout=60) == 130
        assert watching.stderr is not None
        assert watching.stderr.read() == ""
    assert [line["kind"] for line in lines] == ["present", "present", "listed"]
    assert lines[0]["job"]["key"] == "billing.close_month"
    assert lines[2]["job"] is None


@pytest.mark.parametrize("command", ["migrate", "controller"])
def test_without_a_database_it_says_what_to_set(cronring: Cronring, command: str) -> None:
    done = cronring(command)
    assert done.exit_code == 2
    assert "CRONRING_DATABASE_URL" in done.stderr
    assert "--database-url" in done.stderr


def test_version_and_help() -> None:
    assert re.fullmatch(r"cronring \d+\.\d+\.\d+\n", CliRunner().invoke(cli, ["--version"]).stdout)
    for name, command in cli.commands.items():
        shown = CliRunner().invoke(cli, [name, "--help"])
        assert shown.exit_code == 0
        assert command.help, name


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(cronring: Cronring, shell: str) -> None:
    assert "_CRONRING_COMPLETE" in cronring("completion", shell).stdout


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("jobs get billing.r", "billing.refresh"),
        ("deployments get bil", "billing-1"),
        ("undeploy b", "billing"),
        ("limits set b", "billing"),
        ("limits remove pr", "prod/"),
        ("jobs create --after billing.r", "billing.refresh"),
    ],
)
def test_names_complete(api: FakeApi, monkeypatch: pytest.MonkeyPatch, typed: str, completed: str) -> None:
    monkeypatch.setattr(completion, "TIMEOUT_S", TIMEOUT_S)  # a shell isn't kept waiting: here it may be
    api.limits = [limits_pb2.Limit(namespace="prod", max_concurrent=9)]
    count = str(len(typed.split()))
    words = {"COMP_WORDS": f"cronring {typed}", "COMP_CWORD": count, "CRONRING_CONTROLLERS": api.address}
    done = CliRunner().invoke(cli, [], prog_name="cronring", env=words | {"_CRONRING_COMPLETE": "bash_complete"})
    assert done.stdout.split() == [f"plain,{completed}"]


def test_completion_is_silent_when_nobody_answers() -> None:
    words = {"COMP_WORDS": "cronring jobs get b", "COMP_CWORD": "3", "CRONRING_CONTROLLERS": "127.0.0.1:1"}
    done = CliRunner().invoke(cli, [], prog_name="cronring", env=words | {"_CRONRING_COMPLETE": "bash_complete"})
    assert done.output.strip() == ""


HEAVY = ("grpc", "rich", "asyncpg", "google.protobuf", "croniter", "aiohttp")


@pytest.mark.parametrize("arguments", [["--help"], ["next", "25m"]])
def test_nothing_heavy_is_imported_for_what_needs_nothing(arguments: list[str]) -> None:
    """A cheap proxy of the start-up time that does not depend on this machine's speed."""
    script = f"""
import sys
from cronring.controller.errors import StoreUnavailable
from cronring.cli import completion
from cronring.cli.root import cli
try:
    cli({arguments!r}, prog_name="cronring")
except SystemExit:
    pass
print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize(
    ("module", "idle"),
    [
        ("cronring.controller.main", ("rich", "pygments", "click", "croniter", "cronring.runner", "cronring.client")),
        (
            "cronring.runner.main",
            ("rich", "pygments", "click", "asyncpg", "aiohttp", "jwt", "cronring.controller"),
        ),
    ],
)
def test_processes_import_nothing_that_they_never_use(module: str, idle: tuple[str, ...]) -> None:
    """Each start pays for what it imports: structlog alone would bring rich."""
    script = f"""
import sys
from cronring.cli.loading import load_structlog
load_structlog()
import {module}
print([name for name in {idle!r} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("variables", [{}, {"CRONRING_DATABASE_URL": "x", "CRONRING_STOP_ON_EOF": "1"}])
def test_a_command_is_imported_without_the_others(variables: dict[str, str]) -> None:
    script = """
import sys
from cronring.cli import completion
from cronring.cli.root import cli
try:
    cli(["controller", "--help"], prog_name="cronring")
finally:
    print([name for name in sys.modules if name.startswith("cronring.cli.commands.")], file=sys.stderr)
"""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("CRONRING_")}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=plain | variables)
    assert done.stderr.strip() == "['cronring.cli.commands.controller']"


def test_each_command_is_where_the_table_says() -> None:
    assert [name for name, command in cli.commands.items() if command.name != name] == []


def test_shared_variables_are_options_of_some_command() -> None:
    assert SHARED - set(known(cli)) == set()


def test_rich_may_be_imported_after_structlog_was() -> None:
    script = "from cronring.cli.loading import load_structlog; load_structlog(); import rich.console"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_garbage_is_not_looked_for_while_a_command_is_imported() -> None:
    script = """
import gc, sys
sys.argv[1:] = ["--version"]
from cronring.cli.main import main
try:
    main()
finally:
    print(sum(each["collections"] for each in gc.get_stats()) < 20)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "True", done.stdout + done.stderr
