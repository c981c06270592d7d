"""`cronring jobs import`: lines as the options of `jobs create`, positions, and what goes wrong."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cronring.cli.commands.job_import import CALL_MAX
from cronring.cli.commands.job_writes import create_job
from cronring.cli.job_lines import LINE_MAX, JobLines, WrongLine
from cronring.cli.root import cli
from cronring.cli.stream import PART_LINES, Line, Reached, parts
from cronring.protos.cronring.v1 import jobs_pb2
from tests.unit.cli.conftest import Cronring
from tests.unit.cli.fake_api import FakeApi

LINES = JobLines(create_job)
JOB = {"verb": "mail.send", "name": "n1", "cron": "5 * * * *"}


def raw(**changes: Any) -> bytes:
    return json.dumps({name: value for name, value in (JOB | changes).items() if value is not ...}).encode()


def file_of(tmp_path: Path, *lines: bytes) -> Path:
    file = tmp_path / "jobs.ndjson"
    file.write_bytes(b"\n".join(lines))
    return file


def test_a_line_is_what_the_options_are() -> None:
    job = LINES.job(
        raw(
            verb="team-a/mail.send", labels={"team": "x", "cost": "7"}, payload={"to": ["a", 1.5, None]}, retries=3,
            timeout="1m30s", timezone="Europe/Berlin", **{"on-disconnect": "finish", "retry-on": ["A", "B,C"]},
        )
    )  # fmt: skip
    assert (job.namespace, job.module, job.verb, job.name, job.template) == ("team-a", "mail", "send", "n1", "")
    spec = job.spec
    assert (spec.schedule, spec.timeout_ms, spec.on_disconnect) == ("5 * * * *", 90_000, "finish")
    assert json.loads(spec.payload) == {"to": ["a", 1.5, None]}
    assert spec.labels == {"team": "x", "cost": "7"}
    assert spec.policy == {"timezone": "Europe/Berlin", "retries": 3, "retry_on": ["A", "B", "C"]}
    assert LINES.job(raw(cron=..., manual=True, payload='"text"')).spec.payload == '"text"'
    assert LINES.job(raw(cron=..., after="mail.other:x")).spec.schedule == "manual"
    assert LINES.job(raw(cron=..., at="2027-01-01T00:00:00Z", labels=None)).spec.schedule == "at 2027-01-01T00:00:00Z"
    for retries in (0, ""):
        started = LINES.job(raw(cron=..., template="nightly", retries=retries))
        assert (started.template, started.spec.schedule, list(started.explicit)) == ("nightly", "", ["policy.retries"])
        assert started.spec.policy["retries"] == retries


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"{", "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"[]", "no JSON object"),
        (b'{"verb": "a.b", "name": "n", "payload": ' + b"[" * 990 + b"]" * 990 + b"}", ""),
        (b'"x"', "no JSON object"),
        (b'{"verb": "a.b", "verb": "a.c"}', "twice"),
        (b'{"verb": "a.b", "name": "x", "cron": "\\ud800"}', "surrogate"),
        (b'{"name": "x"}' + b" " * LINE_MAX, "more than"),
        (raw(name=...), 'a "name"'),
        (raw(name=7), "name: 7 must be a text"),
        (raw(verb="mail"), "names no verb"),
        (raw(cron=...), "when does it tick?"),
        (raw(every="5m"), "exclude each other"),
        (raw(cron=..., every="5 fortnights"), "--every"),
        (raw(crom="x"), "Did you mean 'cron'?"),
        (raw(output="json"), "output: it is an option of a command"),
        (raw(controllers="h:1"), "controllers: it is an option of a command"),
        (raw(labels=["a=b"]), "must be an object"),
        (raw(labels={"a": 1}), "must be a text"),
        (raw(retries="many"), "is not a valid"),
        (raw(retries=True), "a text or a whole number"),
        (raw(retries=-1), "not in the range"),
        (raw(retries=2**31), "not in the range"),
        (raw(manual="yes"), "true or false"),
        (raw(timeout={}), "a text or a whole number"),
        (raw(on_disconnect="explode"), "is not one of"),
        (raw(retry_on=[1]), "must be a text"),
        (raw(cron=..., at="never"), "never"),
    ],
)
def test_a_wrong_line_says_what_is_wrong(line: bytes, says: str) -> None:
    with pytest.raises(WrongLine) as wrong:
        LINES.job(line)
    assert says in str(wrong.value)


def test_a_file_is_no_payload_of_a_line() -> None:
    """Who writes lines need not be who imports them: nothing of this machine goes into a payload."""
    assert LINES.job(raw(payload="@/etc/passwd")).spec.payload == "@/etc/passwd"


def test_lines_keep_their_numbers_and_what_is_too_long_is_cut(tmp_path: Path) -> None:
    long = b"x" * (3 * LINE_MAX)
    file = file_of(tmp_path, b"\xef\xbb\xbf1", b"", b"  ", long, b"5\r", b"6")
    with file.open("rb") as opened:
        (part,) = parts(opened, Reached())
    assert [line.number for line in part.lines] == [1, 4, 5, 6]
    assert (part.lines[0], part.lines[2], part.lines[3]) == (Line(1, b"1"), Line(5, b"5"), Line(6, b"6"))
    assert len(part.lines[1].raw) == LINE_MAX + 2
    assert (part.offset, part.line) == (file.stat().st_size, 6)


def test_jobs_are_made_in_parts_and_wrong_lines_are_told(asked: Cronring, api: FakeApi, tmp_path: Path) -> None:
    lines = [raw(name=f"n{number}") for number in range(2 * PART_LINES)]
    lines[3], lines[PART_LINES + 1] = b"{", raw(name="bad", cron="wrong")
    file = file_of(tmp_path, *lines)
    done = asked("jobs", "import", "--stream", str(file), "--note", "moved", "--as", "ada", "-o", "json")
    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert (told["lines"], told["made"], told["failed"]) == (2 * PART_LINES, 2 * PART_LINES - 2, 2)
    assert [each["line"] for each in told["problems"]] == [4, PART_LINES + 2]
    assert f"{file}:{PART_LINES + 2}: no schedule" in done.stderr
    asked_for = [each for each in api.requests if isinstance(each, jobs_pb2.CreateJobsRequest)]
    assert [(len(each.jobs), each.note, each.requested_by) for each in asked_for] == [
        (PART_LINES - 1, "moved", "ada"), (PART_LINES, "moved", "ada"),
    ]  # fmt: skip
    assert not Path(f"{file}.position").exists()


def test_what_was_reached_is_kept_for_the_same_file_alone(asked: Cronring, api: FakeApi, tmp_path: Path) -> None:
    file = file_of(tmp_path, *[raw(name=f"n{number}") for number in range(PART_LINES + 5)])
    kept = tmp_path / "kept"
    api.broken.add(f"n{PART_LINES}")
    broken = asked("jobs", "import", "--stream", str(file), "--position", str(kept))
    assert (broken.exit_code, f"line {PART_LINES:,} is reached" in broken.stderr) == (1, True), broken.stderr
    position = kept.read_text()
    api.broken.clear()
    content = file.read_bytes()
    file.write_bytes(content.replace(b"n1999", b"other"))
    other = asked("jobs", "import", "--stream", str(file), "--position", str(kept))
    assert (other.exit_code, "is another file" in other.stderr) == (1, True)
    file.write_bytes(content[:100])
    assert "is another file" in asked("jobs", "import", "--stream", str(file), "--position", str(kept)).stderr
    file.write_bytes(content + b"\n" + raw(name="more"))
    kept.write_text("{}x")
    assert "holds no position" in asked("jobs", "import", "--stream", str(file), "--position", str(kept)).stderr
    kept.write_text(position)
    before, api.cluster_id = api.cluster_id, "c2"
    elsewhere = asked("jobs", "import", "--stream", str(file), "--position", str(kept))
    assert (elsewhere.exit_code, "is of another cluster" in elsewhere.stderr) == (1, True), elsewhere.stderr
    assert kept.read_text() == position
    api.cluster_id = before
    done = asked("jobs", "import", "--stream", str(file), "--position", str(kept))
    assert done.exit_code == 0, done.stderr
    assert [job.name for job in api.requests[-1].jobs] == [f"n{PART_LINES + more}" for more in range(5)] + ["more"]
    assert f"{PART_LINES + 6:,} lines: {PART_LINES + 6:,} jobs are made" in done.stdout
    assert not kept.exists()


def test_what_there_was_no_time_for_is_asked_for_again(asked: Cronring, api: FakeApi, tmp_path: Path) -> None:
    api.late |= {"n1", "n2"}
    done = asked("jobs", "import", "--stream", str(file_of(tmp_path, *[raw(name=f"n{at}") for at in range(4)])))
    assert (done.exit_code, "4 jobs are made" in done.stdout) == (0, True), done.stderr
    _, *made = api.requests  # the first one asks which cluster it is
    assert [[job.name for job in each.jobs] for each in made] == [["n0", "n1", "n2", "n3"], ["n1", "n2"]]


def test_all_or_nothing_is_one_call(asked: Cronring, api: FakeApi, tmp_path: Path) -> None:
    whole = ("jobs", "import", "--all-or-nothing", "--stream")
    done = asked(*whole, str(file_of(tmp_path, raw(), raw(name="n2"))))
    assert done.exit_code == 0, done.stderr
    assert (len(api.requests[-1].jobs), api.requests[-1].all_or_nothing) == (2, True)
    before = len(api.requests)
    wrong = asked(*whole, str(file_of(tmp_path, raw(), b"{")))
    assert (wrong.exit_code, "0 jobs are made" in wrong.stdout, len(api.requests)) == (1, True, before)
    many = file_of(tmp_path, *[raw(name=f"n{number}") for number in range(CALL_MAX + 1)])
    assert "more than one call takes" in asked(*whole, str(many)).stderr


def test_a_schedule_of_a_queue_that_a_line_changes_is_counted_as_changed(asked: Cronring, tmp_path: Path) -> None:
    job = {"queue": "reports", "every": "5m"}
    file = file_of(tmp_path, *[json.dumps(job | {"workspace": each}).encode() for each in ("known", "new")])
    told = json.loads(asked("jobs", "import", "--stream", str(file), "-o", "json").stdout)
    assert (told["made"], told["changed"], told["unchanged"], told["failed"]) == (1, 1, 0, 0)
    assert "1 jobs are made, 1 are changed, 0 were there" in asked("jobs", "import", "--stream", str(file)).stdout


def test_lines_come_from_standard_input_too(api: FakeApi) -> None:
    done = CliRunner().invoke(
        cli, ["jobs", "import", "--stream", "-", "--dry-run"], input=raw() + b"\n",
        env={"CRONRING_CONTROLLERS": api.address}, catch_exceptions=False,
    )  # fmt: skip
    assert (done.exit_code, "1 jobs would be made" in done.stdout) == (0, True), done.stderr
    assert api.requests[-1].dry_run
