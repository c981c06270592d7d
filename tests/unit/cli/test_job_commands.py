"""`cronring jobs create|update|...` through click, over real gRPC: what is asked for, what people read, exit codes."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import click
import grpc
import pytest

from cronring.cli.clock import wall_now
from cronring.cli.commands.job_orders import Until
from cronring.cli.commands.jobs import jobs
from cronring.cli.failures import Failure
from cronring.cli.instants import Moment, resolved
from cronring.cli.policies import in_words
from cronring.cli.root import cli
from cronring.controller.api.problems import InvalidRequest
from cronring.controller.errors import StoreUnavailable
from cronring.protos.cronring.v1 import jobs_pb2, limits_pb2
from cronring.protos.cronring.v1.schema_pb2 import Policy
from cronring.schema.policy_model import DST_GAP, DST_OVERLAP, FIELDS, ON_MISSED, OVERLAP
from tests.unit.cli.conftest import Cronring
from tests.unit.cli.fake_api import FakeApi, execution, job
from tests.unit.cli.fake_times import stamp


def test_create_asks_for_what_was_given(asked: Cronring, api: FakeApi, tmp_path: Path) -> None:
    payload = tmp_path / "site.json"
    payload.write_text('{"url": "x"}')
    done = asked(
        "jobs", "create", "prod/crawl.site", "--name", "docs", "--cron", "0 9 * * *", "--timezone", "Europe/Berlin",
        "--retries", "3", "--retry-on", "lost,ConnectionError", "--retry-on", "failed", "--payload", f"@{payload}",
        "--label", "team=search", "--label", "tier=", "--timeout", "2m", "--on-disconnect", "finish",
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    (request,) = api.requests
    assert (request.namespace, request.module, request.verb, request.name) == ("prod", "crawl", "site", "docs")
    assert "@" in request.requested_by
    assert request.spec == jobs_pb2.JobSpec(
        schedule="0 9 * * *", payload='{"url": "x"}', labels={"team": "search", "tier": ""}, timeout_ms=120_000,
        on_disconnect="finish",
        policy=Policy(timezone="Europe/Berlin", retries=3, retry_on=["lost", "ConnectionError", "failed"]),
    )  # fmt: skip
    assert "billing.site:docs is created" in done.stdout
    assert "2026-11-21T09:05:00+01:00  (2026-11-21 08:05:00Z)" in done.stdout


@pytest.mark.parametrize(
    ("options", "schedule"),
    [
        (["--every", "30m"], "every 30m"),
        (["--at", "2026-03-29T09:00", "--timezone", "Asia/Tokyo"], "at 2026-03-29T00:00:00Z"),
        (["--at", "2026-03-29T09:00:00Z"], "at 2026-03-29T09:00:00Z"),
        (["--manual"], "manual"),
    ],
)
def test_kinds_of_schedules(asked: Cronring, api: FakeApi, options: list[str], schedule: str) -> None:
    assert asked("jobs", "create", "billing.refresh", "--name", "a", *options).exit_code == 0
    assert api.requests[0].spec.schedule == schedule


@pytest.mark.parametrize(
    ("options", "schedule"),
    [(["--now"], "manual"), (["--now", "--every", "30m"], "every 30m")],
)
def test_now_runs_it_once_beside_its_schedule(asked: Cronring, api: FakeApi, options: list[str], schedule: str) -> None:
    done = asked("jobs", "create", "billing.refresh", "--name", "a", *options)
    assert (done.exit_code, "it runs once now: cronring logs -f billing.refresh:a" in done.stdout) == (0, True)
    assert (api.requests[0].spec.schedule, api.requests[0].run_now) == (schedule, True)


def test_what_is_there_already_is_told_so_and_not_run_again(asked: Cronring) -> None:
    again = ("jobs", "create", "billing.refresh", "--name", "known", "--every", "1h")
    done = asked(*again, "--now")
    assert "billing.refresh:known was so already; nothing changed" in done.stdout
    assert "one that is there isn't run again: cronring jobs trigger billing.refresh:known" in done.stdout
    assert json.loads(asked(*again, "-o", "json").stdout)["unchanged"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["create", "billing.refresh", "--name", "a"], "--cron, --every, --at, --after, --manual or --now"),
        (["create", "billing.refresh", "--name", "a", "--every", "1h", "--manual"], "--every and --manual exclude"),
        (["create", "refresh", "--name", "a", "--manual"], "MODULE.VERB"),
        (["create", "billing.refresh", "--manual"], "--name"),
        (["create", "billing.refresh", "--name", "a", "--manual", "--label", "team"], "KEY=VALUE"),
        (["create", "billing.refresh", "--name", "a", "--manual", "--payload", "@/no/such"], "No such file"),
        (["create", "billing.refresh", "--name", "a", "--at", "29.3.2026"], "2026-03-29T00:30:00Z"),
        (["update", "billing.refresh"], "nothing to change"),
        (["backfill", "billing.refresh"], "--from"),
        (["backfill", "billing.refresh", "--from", "yesterday"], "-2h"),
        (["backfill", "billing.refresh", "--from", "-2h", "--dry-run", "--wait"], "exclude each other"),
    ],
)
def test_wrong_usage_says_what_is_right(asked: Cronring, api: FakeApi, arguments: list[str], says: str) -> None:
    done = asked("jobs", *arguments)
    assert (done.exit_code, api.requests) == (2, [])
    assert says in " ".join(done.stderr.split())


def test_what_the_controller_refuses_is_shown_field_by_field(asked: Cronring) -> None:
    done = asked("jobs", "create", "billing.refresh", "--name", "a", "--manual", "--timezone", "Europe/Berln")
    assert done.exit_code == 1
    told = "--timezone: there is no time zone 'Europe/Berln' in IANA's list (at character 1); write 'Europe/Berlin'"
    assert told in done.stderr


def test_what_is_refused_is_told_in_words_of_what_was_typed(asked: Cronring) -> None:
    done = asked(
        "jobs", "create", "billing.refresh", "--name", "a", "--cron", "0 9 * * 8", "--window", "Mon-Fri 08:00-25:00",
        "--start-at", "2026-02-31", "--catch-up-window", "6h", "--on-missed", "skip", "--max-concurrent", "3",
        "--payload", "{", "--label", "team!=x",
    )  # fmt: skip
    assert done.exit_code == 1
    assert "spec." not in done.stderr
    lines = dict(line.strip().split(": ", 1) for line in done.stderr.splitlines()[1:])
    assert list(lines) == ["--start-at", "--window", "--cron", "--payload", "--label team!"]
    assert "character 15" in lines["--window"]
    assert "day-of-week field, character 9" in lines["--cron"]


def test_policies_are_flags_in_what_is_said_of_them(asked: Cronring) -> None:
    done = asked("jobs", "create", "billing.refresh", "--name", "a", "--cron", "5m", "--max-concurrent", "3",
                 "--catch-up-window", "6h", "--on-missed", "skip", "--start-at", "2026-03-02", "--end-at",
                 "2026-03-01")  # fmt: skip
    told = " ".join(done.stderr.split())
    assert "--end-at: 2026-03-01T23:59:59Z is before --start-at, 2026-03-02T00:00:00Z; swap them" in told
    assert "--max-concurrent: counts only with --overlap allow; write that too" in told
    assert "--catch-up-window: --on-missed skip catches nothing up; leave it out, or write --on-missed run_last" in told


@pytest.mark.parametrize(
    ("violation", "command", "told"),
    [
        (("until_at", "is before from_at; swap them"), ["backfill", "billing.refresh", "--from", "-2h"],
         "--to: is before --from; swap them"),
        (("payload", "$: is 3, not Site"), ["trigger", "billing.refresh", "--payload", "3"],
         "--payload: $: is 3, not Site"),
        (("spec.schedule", "has no tick left"), ["update", "billing.refresh", "--at", "2026-03-01"],
         "--at: has no tick left"),
        (("module", "is empty"), ["create", ".x", "--name", "a", "--manual"], "names no verb"),
        (("note", "must have 1000 characters"), ["pause", "billing.refresh", "--note", "x"],
         "--note: must have 1000 characters"),
    ],
)  # fmt: skip
def test_every_field_has_its_flag(
    asked: Cronring, api: FakeApi, violation: tuple[str, str], command: list[str], told: str
) -> None:
    api.refusal = InvalidRequest([violation])
    assert told in asked("jobs", *command).stderr


def test_an_interval_is_judged_by_its_own_characters(asked: Cronring, api: FakeApi) -> None:
    done = asked("jobs", "create", "billing.refresh", "--name", "a", "--every", "5x")
    assert (done.exit_code, api.requests) == (1, [])
    assert "--every: " in done.stderr
    assert "  5x\n   ^" in done.stderr


def test_update_names_only_what_was_given(asked: Cronring, api: FakeApi) -> None:
    done = asked(
        "jobs", "update", "billing.refresh", "--every", "1h", "--overlap", "", "--retries", "0", "--set-label", "a=1",
        "--remove-label", "b", "--retry-on", "",
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    (request,) = api.requests
    assert set(request.update_mask.paths) == {
        "schedule", "labels.a", "labels.b", "policy.overlap", "policy.retries", "policy.retry_on",
    }  # fmt: skip
    assert request.spec == jobs_pb2.JobSpec(schedule="every 1h", labels={"a": "1"}, policy=Policy(retries=0))
    assert asked("jobs", "update", "billing.refresh", "--retries", "").exit_code == 0
    unset = api.requests[-1]
    assert (list(unset.update_mask.paths), unset.spec.policy.HasField("retries")) == (["policy.retries"], False)


def test_no_retries_are_shown_and_those_of_the_cluster_with_their_source(asked: Cronring, api: FakeApi) -> None:
    api.jobs = [job("refresh", default_retries=2), job("close_month", policy=Policy(retries=0))]
    assert "2 (cluster default)   (after a failure up to 2 further" in asked("jobs", "show", "billing.refresh").stdout
    assert "0   (a tick whose run failed is not tried again)" in asked("jobs", "show", "billing.close_month").stdout


def test_an_instant_in_an_update_is_on_the_jobs_own_clocks(asked: Cronring, api: FakeApi) -> None:
    assert asked("jobs", "update", "billing.refresh", "--at", "2026-07-01T09:00").exit_code == 0
    assert api.requests[-1].spec.schedule == "at 2026-07-01T07:00:00Z"


def test_every_policy_has_an_option_with_its_help_and_words(asked: Cronring) -> None:
    shown = " ".join(asked("jobs", "create", "--help").stdout.split())
    update = jobs.commands["update"]
    for field in FIELDS:
        assert f"--{field.name.replace('_', '-')}" in shown
        assert field.name in {param.name for param in update.params}
        assert in_words(field.name, ["lost"] if field.kind == "names" else "5")
    kinds = {"dst_gap": DST_GAP, "dst_overlap": DST_OVERLAP, "on_missed": ON_MISSED, "overlap": OVERLAP}
    for name, values in kinds.items():
        assert all(value != in_words(name, value) for value in values), name


def test_a_job_is_shown_with_the_limits_that_it_is_under(asked: Cronring, api: FakeApi) -> None:
    api.limits = [
        limits_pb2.Limit(namespace="default", max_concurrent=9, running=2),
        limits_pb2.Limit(namespace="default", module="billing", max_concurrent=2, running=2),
        limits_pb2.Limit(namespace="default", module="other", max_concurrent=1, running=1),
    ]
    told = asked("jobs", "show", "billing.refresh").stdout
    assert "namespace default runs 2 of 9\n" in told
    assert "module billing runs 2 of 2   (what is due waits for a place)" in told
    assert "other" not in told
    shown = json.loads(asked("jobs", "show", "billing.refresh", "-o", "json").stdout)
    assert [each["module"] for each in shown["limits"]] == ["", "billing"]


def test_the_clusters_jitter_is_shown_as_such(asked: Cronring, api: FakeApi) -> None:
    api.jobs = [job("a", policy={"jitter": "3s"}, jitter_is_default=True), job("b", policy={"jitter": "3s"})]
    assert "3s (cluster default)   (runs start after their ticks" in asked("jobs", "show", "billing.a").stdout
    assert "3s   (runs start after their ticks" in asked("jobs", "show", "billing.b").stdout
    shown = json.loads(asked("jobs", "show", "billing.a", "-o", "json").stdout)
    assert (shown["policy"], shown["jitter_is_default"]) == ({"jitter": "3s"}, True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["pause", "billing.refresh", "--note", "why"], "billing.refresh is paused"),
        (["resume", "billing.refresh"], "billing.refresh is resumed"),
        (["delete", "billing.refresh"], "billing.refresh is deleted"),
        (["trigger", "billing.refresh"], "activation 7"),
        (["activations", "billing.refresh", "--cancel", "7"], ""),
        (["backfill", "billing.refresh", "--from", "-2h"], "3 ticks"),
    ],
)
def test_what_people_read(asked: Cronring, arguments: list[str], says: str) -> None:
    done = asked("jobs", *arguments)
    assert done.exit_code == 0, done.stderr
    assert says in done.stdout
    assert json.loads(asked("jobs", *arguments, "-o", "json").stdout) is not None


@pytest.mark.parametrize(
    "command",
    [name for name in jobs.commands if name not in {"list", "create", "export", "import", "policies", "watch"}],
)
def test_an_unknown_job_suggests_the_nearest(asked: Cronring, command: str) -> None:
    extra = {"backfill": ["--from", "-1h"], "update": ["--manual"]}.get(command, [])
    done = asked("jobs", command, "billing.refesh", *extra)
    assert (done.exit_code, done.stdout) == (1, ""), "or it takes no KEY: then leave it out above"
    assert "Did you mean 'billing.refresh'?" in done.stderr


@pytest.mark.parametrize("command", list(jobs.commands))
def test_every_command_teaches_with_an_example(asked: Cronring, command: str) -> None:
    shown = asked("jobs", command, "--help").stdout
    assert "Example" in shown, "its docstring ends with `Example: cronring jobs ...`"
    assert f"cronring jobs {'show' if command == 'get' else command}" in shown


def test_show_tells_everything(asked: Cronring, api: FakeApi) -> None:
    pause = jobs_pb2.Pause(at=stamp(0), by="ada@host", note="bank holiday")
    api.jobs = [
        job("refresh", paused=pause, failures=2, payload='{"a":1}', labels={"team": "x"}, last_success=stamp(-5),
            next_execution=stamp(303.5), policy=Policy(overlap="buffer_one", retry_on=["lost", "failed"])),
    ]  # fmt: skip
    api.waiting = [[api.activation("retry")]]
    lines = asked("jobs", "show", "billing.refresh").stdout
    for words in (
        "the API", "every 5 minutes", "since 2026-11-21 08:00:00Z by ada@host: bank holiday",
        "2026-11-21T09:05:00+01:00 in Europe/Berlin   (2026-11-21 08:05:00Z)", "08:05:03.500Z   (+3.5s",
        "buffer_one   (of the ticks that come while a run lasts, the latest runs after it)", "lost, failed",
        '{"a":1}', "team=x", "2 ticks in a row", "tick 2026-11-21 07:59:55Z", "waiting beside its schedule", "retry",
    ):  # fmt: skip
        assert words in lines, words


def test_trigger_waits_for_its_own_execution(asked: Cronring, api: FakeApi) -> None:
    api.waiting, api.printed = [[api.activation("manual")], []], b"working\n"
    api.executions.insert(0, execution(6, trigger="manual", outcome="failed", error_type="ValueError"))
    done = asked("jobs", "trigger", "billing.refresh", "--payload", "1", "--wait")
    assert done.exit_code == 1
    assert "ValueError" in done.stdout
    assert done.stdout.startswith("working\n")
    api.executions[0] = execution(6, trigger="manual")
    done = asked("jobs", "trigger", "billing.refresh", "--wait", "-o", "json")
    assert (done.exit_code, json.loads(done.stdout)["id"]) == (0, 6)


def test_a_run_that_cannot_be_followed_has_an_exit_code_of_its_own(asked: Cronring, api: FakeApi) -> None:
    api.executions.insert(0, execution(6, trigger="manual"))
    api.printed, api.cut_off = b"work", (grpc.StatusCode.RESOURCE_EXHAUSTED, "reads too slowly; go on from offset 4")
    done = asked("jobs", "trigger", "billing.refresh", "--wait")
    assert (done.exit_code, done.stdout) == (3, "work")
    assert "goes on without this command" in done.stderr
    assert "go on from offset 4" in done.stderr


def test_trigger_tells_of_a_cancelled_activation(asked: Cronring) -> None:
    done = asked("jobs", "trigger", "billing.refresh", "--wait")
    assert done.exit_code == 1
    assert "cancelled before it began" in done.stderr


def test_what_must_not_be_done_twice_is_not_repeated(asked: Cronring, api: FakeApi) -> None:
    api.refusal, api.refused_at_commit = StoreUnavailable("connection refused"), True
    done = asked("jobs", "trigger", "billing.refresh", "--controllers", f"127.0.0.1:1,{api.address},{api.address}")
    assert done.exit_code == 3
    assert "unknown whether it was done" in done.stderr
    assert "cronring jobs activations billing.refresh" in done.stderr
    assert len(api.requests) == 1, "the first address was never reached, the second was asked once"


def test_a_conflict_is_no_usage_error(asked: Cronring, api: FakeApi) -> None:
    api.failure = grpc.StatusCode.FAILED_PRECONDITION, "billing.refresh is declared by its module"
    done = asked("jobs", "delete", "billing.refresh")
    assert (done.exit_code, done.stderr.strip()) == (1, "error: billing.refresh is declared by its module")


def test_backfill_reads_instants_on_the_jobs_clocks(asked: Cronring, api: FakeApi) -> None:
    arguments = ["--from", "2026-03-29", "--to", "2026-03-29", "--overlap", "allow", "--again", "--dry-run"]
    done = asked("jobs", "backfill", "billing.refresh", *arguments)
    assert done.exit_code == 0, done.stderr
    request = api.requests[-1]
    assert (request.from_at.ToJsonString(), request.until_at.ToJsonString()) == (
        "2026-03-28T23:00:00Z",
        "2026-03-29T21:59:59Z",
    )
    assert (request.beside, request.again, request.dry_run) == (True, True, True)
    assert [line.split()[-1] for line in done.stdout.splitlines()[1:]] == ["yes", "yes"]
    assert "2000 ticks; the first 2 are shown" in done.stderr
    done = asked("jobs", "backfill", "billing.refresh", "--from", "2026-03-29", "--dry-run")
    assert [line.split()[-1] for line in done.stdout.splitlines()[1:]] == ["no", "yes"]
    assert "1 of these have completed" in done.stderr


def test_backfill_waits_for_its_last_run(asked: Cronring, api: FakeApi) -> None:
    left = [[api.activation("backfill", until_tick=stamp(8), ticks_left=number)] for number in (3, 1)]
    api.waiting = [*left, []]
    api.executions = [execution(number, trigger="backfill") for number in (8, 7, 6)] + api.executions
    api.executions[0].outcome = "failed"
    for each in api.executions[:3]:
        each.id += 100
    api.executions[3:] = []
    newest = execution(5)
    api.executions.append(newest)
    api.executions.sort(key=lambda each: each.id)
    done = asked("jobs", "backfill", "billing.refresh", "--from", "-2h", "--wait")
    assert (done.exit_code, done.stdout) == (1, "2 completed, 1 failed\n")


def test_instants() -> None:
    assert resolved("2026-03-29T02:30:00Z") == datetime(2026, 3, 29, 2, 30, tzinfo=UTC)
    assert resolved("2026-10-25T02:30", "Europe/Berlin") == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert resolved("2026-03-29", "Europe/Berlin", end_of_day=True) == datetime(2026, 3, 29, 21, 59, 59, tzinfo=UTC)
    assert abs(resolved("-2h") - (wall_now() - timedelta(hours=2))) < timedelta(minutes=1)
    assert abs(resolved("now") - wall_now()) < timedelta(minutes=1)
    with pytest.raises(Failure, match="skip this time"):
        resolved("2026-03-29T02:30", "Europe/Berlin")
    with pytest.raises(Failure, match=r"did you mean -2h, or \+2h"):
        resolved("2h")


@pytest.mark.parametrize("text", ["9:00", "09:00", "23:59:30", "00:00"])
@pytest.mark.parametrize("zone", ["", "Asia/Tokyo", "Pacific/Kiritimati", "America/Los_Angeles"])
def test_a_time_alone_is_todays_on_the_zones_clocks(text: str, zone: str) -> None:
    here = wall_now().astimezone(ZoneInfo(zone or "UTC"))
    hour, minute, second = (int(part) for part in f"{text}:0".split(":")[:3])
    found = resolved(text, zone).astimezone(ZoneInfo(zone or "UTC"))
    assert found == here.replace(hour=hour, minute=minute, second=second, microsecond=0)


# Of each command with an option for an instant: what goes before the option.
INSTANT_OPTIONS = [
    (("audit",), "--since"),
    (("audit",), "--until"),
    (("audit-log", "list"), "--since"),
    (("audit-log", "list"), "--until"),
    (("executions", "list"), "--since"),
    (("executions", "list"), "--until"),
    (("cluster", "members"), "--at"),
    (("cluster", "owners", "billing.refresh"), "--at"),
    (("timeline",), "--since"),
    (("timeline",), "--until"),
    (("why", "billing.refresh"), "--at"),
    (("jobs", "books", "billing.refresh"), "--before"),
    (("queues", "put", "reports", "1"), "--not-before"),
    (("jobs", "backfill", "billing.refresh", "--dry-run"), "--from"),
    (("jobs", "backfill", "billing.refresh", "--dry-run", "--from", "-2d"), "--to"),
    (("jobs", "pause", "billing.refresh"), "--until"),
    (("jobs", "skip-next", "billing.refresh"), "--tick"),
    (("jobs", "create", "billing.refresh", "--name", "a"), "--at"),
    (("jobs", "create", "billing.refresh", "--name", "a", "--every", "1h"), "--anchor"),
    (("jobs", "create", "billing.refresh", "--name", "a", "--every", "1h"), "--start-at"),
    (("jobs", "create", "billing.refresh", "--name", "a", "--every", "1h"), "--end-at"),
    (("next", "* * * * *"), "--from"),
    (("explain", "* * * * *"), "--from"),
]


@pytest.mark.parametrize("text", ["-1m", "now", "00:00", "2026-03-29", "2026-03-30T02:30", "2026-03-29T00:30:00Z"])
@pytest.mark.parametrize(("command", "option"), INSTANT_OPTIONS)
def test_every_option_for_an_instant_reads_all_forms(
    asked: Cronring, command: tuple[str, ...], option: str, text: str
) -> None:
    done = asked(*command, option, text)
    assert done.exit_code == 0, done.stderr


def test_the_list_of_these_options_is_whole() -> None:
    def options(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        for param in command.params:
            if isinstance(param.type, Moment | Until) and path[:1] not in {("template",), ("dev",), ("queues",)}:
                yield " ".join(path), param.opts[0]
        for name, each in command.commands.items() if isinstance(command, click.Group) else ():
            yield from options(each, (*path, name))

    tried = {(" ".join(command), option) for command, option in INSTANT_OPTIONS}
    for path, option in options(cli, ()):
        assert any(command.startswith(path.replace("update", "create")) and option == name for command, name in tried)


@pytest.mark.parametrize(
    "command",
    [("audit", "--since"), ("executions", "list", "--since"), ("jobs", "backfill", "billing.refresh", "--from")],
)
def test_what_is_to_come_is_refused_where_only_the_past_makes_sense(asked: Cronring, command: tuple[str, ...]) -> None:
    done = asked(*command, "+1m")
    assert done.exit_code == 1
    assert "is to come" in done.stderr
    assert "1m ago is -1m" in done.stderr
    with pytest.raises(click.ClickException, match="unit"):
        resolved("-2x")
