"""A job that is exported is the same job when its file is read: for every schedule, policy, payload and label."""

import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cronring.cli.commands.job_writes import create_job
from cronring.cli.files.reading import Files
from cronring.cli.files.writing import toml_lines, yaml_lines
from cronring.cli.job_lines import JobLines
from cronring.client.many import JobToMake, creation
from cronring.client.model import JobSpec
from cronring.client.payloads import JsonText

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
INSTANTS = st.integers(10**8, 4 * 10**9).map(lambda second: datetime.fromtimestamp(second, UTC))
SCHEDULES = st.sampled_from(
    ["0 6 1 * *", "*/5 * * * *", "5s", "Mon", "every 30m", "every 1h30m", "manual", "at 2031-03-01T08:00:00Z"]
)
TEXTS = {
    "timezone": ["Europe/Berlin", "UTC", "+05:30"], "dst_gap": ["skip", "run_after"], "end_at": ["2032-01-01"],
    "start_at": ["2031-01-01T00:00:00Z"], "window": ["Mon-Fri 08:00-18:00", "00:00-24:00"],
    "jitter": ["off", "auto", "±30s", "5m"], "on_missed": ["skip", "run_all"], "catch_up_window": ["1h"],
    "overlap": ["allow", "buffer_one"], "backoff": ["90s"], "late_after": ["5s"], "after": ["billing.close:x"],
    "memory_limit": ["64MiB"], "cpu_limit": ["10s"], "history": ["30d"],
}  # fmt: skip
COUNTS = ("max_concurrent", "retries", "pause_after_failures", "history_runs", "priority")
ERRORS = st.lists(st.sampled_from(["lost", "timed_out", "KeyError"]), min_size=1, unique=True)
POLICIES: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={name: st.sampled_from(texts) for name, texts in TEXTS.items()}
    | dict.fromkeys(COUNTS, st.integers(1, 99))
    | {"retry_on": ERRORS},
)
LABELS = st.dictionaries(st.from_regex(r"[a-z0-9]{1,8}", fullmatch=True), TEXT, max_size=3)


@st.composite
def jobs(draw: st.DrawFn) -> JobToMake:
    schedule, policy = draw(SCHEDULES), draw(POLICIES)
    payload = draw(JSON | st.just(None).map(lambda _: ...))
    spec = JobSpec(
        schedule="manual" if "after" in policy else schedule,
        policy=policy,
        anchor=draw(INSTANTS) if schedule.startswith("every") and "after" not in policy else None,
        payload=JsonText(
            "" if payload is ... else json.dumps(payload, ensure_ascii=draw(st.booleans()), separators=(",", ":"))
        ),
        labels=draw(LABELS),
        timeout_ms=draw(st.none() | st.integers(1, 10**9)),
        on_disconnect=draw(st.sampled_from(["", "stop", "finish"])),
    )
    name, namespace = draw(st.sampled_from(["a", "on", "1", "a.b-c"])), draw(st.sampled_from(["default", "ops"]))
    if draw(st.booleans()):
        workspace = draw(st.sampled_from(["", "ws_3", "1"]))
        return JobToMake(
            "", "", name, spec, namespace, queue=draw(st.sampled_from(["reports", "1"])), workspace=workspace
        )
    return JobToMake("billing", "close", name, spec, namespace)


def meant(job: JobToMake) -> tuple[bytes, Any]:
    """As the controllers take it; of the payload what its JSON is."""
    message = creation(job)
    payload = json.loads(message.spec.payload) if message.spec.payload else ...
    message.spec.payload = ""
    return message.SerializeToString(deterministic=True), repr(payload)


@given(st.lists(jobs(), max_size=3, unique_by=lambda job: job.name), st.sampled_from(["yaml", "toml"]))
def test_what_is_exported_is_what_is_read(drawn: list[JobToMake], form: str) -> None:
    namespace = drawn[0].namespace if drawn else "default"
    wanted = [job for job in drawn if job.namespace == namespace]
    lines = yaml_lines if form == "yaml" else toml_lines
    files = Files(JobLines(create_job))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"x.{form}"
        path.write_text("".join(lines({"set": "x", "namespace": namespace}, iter(wanted))), "utf-8", newline="")
        files.read(path)
    assert not files.faults
    assert [meant(each.job) for each in files.sets[namespace, "x"].jobs.values()] == [meant(job) for job in wanted]
