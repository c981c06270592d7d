"""Jobs, as docs/interval-jobs.md has them: every field, every transition, both ways of scheduling."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.integration.interval_jobs.conftest import Place, until

A_DAY = 86_400.0
FIELDS = (
    "id", "source_id", "source_name", "url", "verb", "payload", "interval_minutes", "interval_type", "schedule_time",
    "schedule_enabled", "max_retries", "retry_backoff_seconds", "metadata", "status", "is_paused", "paused_at",
    "cancelled_at", "next_run_at", "started_at", "completed_at", "created_at", "updated_at", "error_message",
    "current_retry_count",
)  # fmt: skip
SITE = "https://a.example"


def instant(text: str) -> datetime:
    assert text.endswith("Z"), text
    return datetime.fromisoformat(text)


def test_a_recurring_job_has_every_field(place: Place) -> None:
    before = datetime.now(UTC)
    job = place.client.create(
        source_id="s-1", source_name="A", url=SITE, interval_minutes=6, interval_type="hours", max_retries=5,
        retry_backoff_seconds=30, metadata={"b": 1, "a": [1.5, None, {"x": "é"}]},
    )  # fmt: skip
    assert tuple(job) == FIELDS
    created, next_run = instant(job.pop("created_at")), instant(job.pop("next_run_at"))
    assert before - timedelta(seconds=2) <= created <= instant(job.pop("updated_at")) <= datetime.now(UTC)
    assert timedelta(hours=6) - timedelta(seconds=2) <= next_run - created <= timedelta(hours=6)
    assert isinstance(job.pop("id"), str)
    assert job == {
        "source_id": "s-1", "source_name": "A", "url": SITE, "verb": "crawler.fetch", "payload": None,
        "interval_minutes": 6, "interval_type": "hours", "schedule_time": None, "schedule_enabled": True,
        "max_retries": 5, "retry_backoff_seconds": 30, "metadata": {"b": 1, "a": [1.5, None, {"x": "é"}]},
        "status": "scheduled", "is_paused": False, "paused_at": None, "cancelled_at": None, "started_at": None,
        "completed_at": None, "error_message": None, "current_retry_count": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        ({"interval_minutes": 30}, 1_800),
        ({"interval_minutes": 30, "interval_type": "minutes"}, 1_800),
        ({"interval_minutes": 6, "interval_type": "hours"}, 21_600),
        ({"interval_minutes": 2, "interval_type": "days"}, 2 * A_DAY),
        ({"interval_minutes": 30, "schedule_time": "0 0 1 1 *"}, 1_800),
    ],
)
def test_intervals(place: Place, fields: dict[str, Any], seconds: float) -> None:
    job = place.client.create(url=SITE, **fields)
    assert seconds - 2 <= (instant(job["next_run_at"]) - instant(job["created_at"])).total_seconds() <= seconds
    assert (job["status"], job["schedule_enabled"]) == ("scheduled", True)
    assert job["interval_type"] == fields.get("interval_type", "minutes")


def test_patterns(place: Place) -> None:
    job = place.client.create(url=SITE, schedule_time="30 4 * * *")
    following = instant(job["next_run_at"])
    assert (following.hour, following.minute, following.second) == (4, 30, 0)
    assert timedelta(0) < following - datetime.now(UTC) <= timedelta(days=1)
    assert (job["interval_minutes"], job["schedule_time"]) == (None, "30 4 * * *")


@pytest.mark.parametrize("fields", [{}, {"interval_minutes": 5, "schedule_enabled": False}])
def test_what_has_no_schedule_runs_once_and_at_once(place: Place, fields: dict[str, Any]) -> None:
    job = place.client.create(url=f"{SITE}/once", source_name="S", metadata={"not": "told"}, **fields)
    assert job["status"] in {"pending", "running", "completed"}
    assert job["schedule_enabled"] is False
    done = place.client.until(job, "completed")
    assert instant(done["created_at"]) <= instant(done["started_at"]) <= instant(done["completed_at"])
    assert (done["next_run_at"], done["error_message"], done["current_retry_count"]) == (None, None, 0)
    assert place.noted(job) == [{"payload": {"url": f"{SITE}/once", "source_name": "S"}, "attempt": 1}]


def test_what_the_caller_gives_reaches_the_verb(place: Place) -> None:
    job = place.client.create(url=SITE, source_id="s", payload={"depth": 2, "deep": {"er": [None, 1.5]}})
    assert job["payload"] == {"depth": 2, "deep": {"er": [None, 1.5]}}
    place.client.until(job, "completed")
    (given,) = place.noted(job)
    assert given["payload"] == {"depth": 2, "deep": {"er": [None, 1.5]}, "source_id": "s", "url": SITE}


def test_another_verb_may_be_named(place: Place) -> None:
    job = place.client.create(verb="crawler.sweep", source_id="sweeper")
    assert (job["verb"], job["source_id"], job["url"]) == ("crawler.sweep", "sweeper", None)
    place.client.until(job, "completed")
    place.client.refused(422, "POST", "/jobs", {"verb": "crawler.sweep", "payload": {"a": 1}})
    assert "did you mean" in place.client.refused(422, "POST", "/jobs", {"verb": "crawler.swep"})["detail"]
    place.client.refused(422, "POST", "/jobs", {"verb": "elsewhere/crawler.fetch"})


def test_a_put_leaves_what_is_not_given(place: Place) -> None:
    job = place.client.create(url=SITE, source_id="s", interval_minutes=60, max_retries=1, metadata={"a": 1})
    changed = place.client.good("PUT", f"/jobs/{job['id']}", {"source_name": "N", "interval_minutes": 90})
    assert changed["updated_at"] > job["updated_at"]
    assert changed["next_run_at"] > job["next_run_at"]
    moved = {"source_name": "N", "interval_minutes": 90} | {
        name: changed[name] for name in ("updated_at", "next_run_at")
    }
    assert changed == job | moved
    assert place.client.get(job) == changed
    # Metadata alone changes no schedule.
    again = place.client.good("PUT", f"/jobs/{job['id']}", {"metadata": {"b": 2}})
    assert again == changed | {"metadata": {"b": 2}, "updated_at": again["updated_at"]}
    assert again["updated_at"] > changed["updated_at"]


def test_a_job_that_was_read_can_be_sent_back(place: Place) -> None:
    job = place.client.create(url=SITE, interval_minutes=60)
    back = place.client.good("PUT", f"/jobs/{job['id']}", job | {"max_retries": 7})
    assert back == job | {"max_retries": 7, "updated_at": back["updated_at"], "next_run_at": back["next_run_at"]}


def test_null_takes_a_field_away(place: Place) -> None:
    job = place.client.create(url=SITE, source_id="s", interval_minutes=60, schedule_time="0 3 * * *")
    changed = place.client.good("PUT", f"/jobs/{job['id']}", {"interval_minutes": None, "source_id": None})
    assert (changed["interval_minutes"], changed["source_id"]) == (None, None)
    assert instant(changed["next_run_at"]).hour == 3
    place.client.refused(422, "PUT", f"/jobs/{job['id']}", {"url": None})


def test_a_job_changes_its_way_of_running(place: Place) -> None:
    job = place.client.create(url=SITE, interval_minutes=60)
    once = place.client.good("PUT", f"/jobs/{job['id']}", {"schedule_enabled": False})
    assert once["schedule_enabled"] is False
    done = place.client.until(job, "completed")
    assert done["next_run_at"] is None
    # Not again, as it is once already.
    place.client.good("PUT", f"/jobs/{job['id']}", {"source_name": "x"})
    back = place.client.good("PUT", f"/jobs/{job['id']}", {"schedule_enabled": True})
    assert back["status"] == "scheduled"
    assert back["next_run_at"]
    assert len(place.noted(job)) == 1


def test_a_job_that_is_changed_while_it_runs_finishes_as_it_began(place: Place) -> None:
    job = place.client.create(url=f"{SITE}/waits", verb="crawler.fetch")
    place.client.until(job, "running")
    place.client.good("PUT", f"/jobs/{job['id']}", {"url": f"{SITE}/other"})
    (place.crawled / "go").touch()
    place.client.until(job, "completed")
    (place.crawled / "go").unlink()
    assert [given["payload"]["url"] for given in place.noted(job)] == [f"{SITE}/waits"]
    place.client.order(job, "trigger")
    until(lambda: len(place.noted(job)) == 2, lambda: place.noted(job))
    assert place.noted(job)[1]["payload"]["url"] == f"{SITE}/other"


def test_pause_and_resume(place: Place) -> None:
    job = place.client.create(url=SITE, interval_minutes=60)
    paused = place.client.order(job, "pause")
    assert (paused["status"], paused["is_paused"], paused["next_run_at"]) == ("paused", True, None)
    assert instant(paused["paused_at"]) >= instant(job["created_at"])
    resumed = place.client.order(job, "resume")
    assert (resumed["status"], resumed["is_paused"], resumed["paused_at"]) == ("scheduled", False, None)
    assert instant(resumed["next_run_at"]) > datetime.now(UTC)


def test_cancel_ends_what_runs(place: Place) -> None:
    job = place.client.create(url=f"{SITE}/waits")
    place.client.until(job, "running")
    cancelled = place.client.order(job, "cancel")
    assert (cancelled["status"], cancelled["next_run_at"]) == ("cancelled", None)
    assert instant(cancelled["cancelled_at"]) >= instant(job["created_at"])
    (run,) = until(
        lambda: runs if (runs := place.client.runs(job))[0]["status"] != "running" else None,
        lambda: place.client.runs(job),
    )
    assert run["status"] == "cancelled"
    assert place.client.get(job)["status"] == "cancelled"


def test_out_of_retries_a_job_fails_and_stops_until_it_is_retried(place: Place) -> None:
    """Each second a tick would come; retries come after 1 s and 2 s."""
    job = place.client.create(
        url=f"{SITE}/fails", schedule_time="* * * * * *", max_retries=2, retry_backoff_seconds=1
    )  # fmt: skip
    counts: dict[tuple[str, int], None] = {}

    def failed() -> Any:
        found = place.client.get(job)
        counts[found["status"], found["current_retry_count"]] = None
        return found if found["status"] == "failed" else None

    stopped = until(failed, lambda: place.client.get(job))
    assert (stopped["error_message"], stopped["current_retry_count"]) == ("the site is closed", 2)
    assert (stopped["next_run_at"], stopped["is_paused"], stopped["paused_at"]) == (None, False, None)
    assert [each for each in counts if each[1] and each[0] == "scheduled"] == [("scheduled", 1), ("scheduled", 2)]
    runs = place.client.runs(job)
    assert [run["retry_attempt"] for run in runs] == [2, 1, 0]
    starts = [instant(run["started_at"]) for run in reversed(runs)]
    ends = [instant(run["completed_at"]) for run in reversed(runs)]
    assert timedelta(seconds=1) <= starts[1] - ends[0]
    assert timedelta(seconds=2) <= starts[2] - ends[1]
    retried = place.client.order(job, "retry")
    assert retried["status"] in {"pending", "running"}
    assert (retried["current_retry_count"], retried["error_message"]) == (0, None)
    again = place.client.until(job, "failed")
    assert [run["retry_attempt"] for run in place.client.runs(job)] == [2, 1, 0, 2, 1, 0]
    assert again["current_retry_count"] == 2


def test_a_recurring_job_returns_to_scheduled_with_its_retries_counted_anew(place: Place) -> None:
    job = place.client.create(
        url=f"{SITE}/recovers", schedule_time="* * * * * *", max_retries=9, retry_backoff_seconds=1
    )  # fmt: skip
    until(lambda: len(place.client.runs(job)) >= 2, lambda: place.client.runs(job))
    (place.crawled / "open").touch()
    until(lambda: place.client.runs(job)[0]["status"] == "completed", lambda: place.client.runs(job))
    found = until(
        lambda: found if (found := place.client.get(job))["status"] == "scheduled" else None,
        lambda: place.client.get(job),
    )
    assert (found["current_retry_count"], found["error_message"]) == (0, None)
    until(
        lambda: [run["retry_attempt"] for run in place.client.runs(job)[:2]] == [0, 0], lambda: place.client.runs(job)
    )
    place.client.good("DELETE", f"/jobs/{job['id']}", status=204)
    (place.crawled / "open").unlink()


def test_a_failed_job_that_runs_once_is_retried_to_its_end(place: Place) -> None:
    job = place.client.create(url=f"{SITE}/recovers", max_retries=0)
    failed = place.client.until(job, "failed")
    assert (failed["error_message"], failed["current_retry_count"]) == ("not yet", 0)
    (place.crawled / "open").touch()
    place.client.order(job, "retry")
    done = place.client.until(job, "completed")
    assert (done["error_message"], done["next_run_at"]) == (None, None)
    (place.crawled / "open").unlink()


def test_trigger_runs_at_once_and_leaves_the_schedule(place: Place) -> None:
    job = place.client.create(url=SITE, interval_minutes=60)
    triggered = place.client.order(job, "trigger")
    assert triggered["status"] in {"pending", "running", "scheduled"}
    until(lambda: place.noted(job), lambda: place.client.get(job))
    found = place.client.until(job, "scheduled")
    assert found["next_run_at"] == job["next_run_at"]
    place.client.order(job, "pause")
    place.client.order(job, "trigger")
    until(lambda: len(place.noted(job)) == 2, lambda: place.client.get(job))
    place.client.until(job, "paused")


def test_orders_in_the_wrong_state_are_conflicts(place: Place) -> None:
    scheduled = place.client.create(url=SITE, interval_minutes=60)
    completed = place.client.create(url=SITE)
    place.client.until(completed, "completed")
    failed = place.client.create(url=f"{SITE}/fails", max_retries=0)
    place.client.until(failed, "failed")
    paused = place.client.create(url=SITE, interval_minutes=60)
    place.client.order(paused, "pause")
    cancelled = place.client.create(url=SITE, interval_minutes=60)
    place.client.order(cancelled, "cancel")
    running = place.client.create(url=f"{SITE}/waits")
    place.client.until(running, "running")
    refused = {
        "pause": (completed, failed, paused, cancelled, running),
        "resume": (scheduled, completed, failed, cancelled, running),
        "cancel": (completed, failed, cancelled),
        "retry": (scheduled, completed, paused, cancelled, running),
        "trigger": (failed, cancelled, running),
    }
    for order, jobs in refused.items():
        for job in jobs:
            before = place.client.get(job)
            problem = place.client.refused(409, "POST", f"/jobs/{job['id']}/{order}")
            assert f"it is {before['status']}" in problem["detail"], problem
            assert place.client.get(job) == before
    place.client.refused(409, "PUT", f"/jobs/{cancelled['id']}", {"url": "https://b.example"})
    (place.crawled / "go").touch()
    place.client.until(running, "completed")
    (place.crawled / "go").unlink()


def test_a_deleted_job_is_unknown(place: Place) -> None:
    job = place.client.create(url=SITE, interval_minutes=60)
    answer = place.client.send("DELETE", f"/jobs/{job['id']}")
    assert (answer.status, answer.body) == (204, None)
    path = f"/jobs/{job['id']}"
    for method, each in (
        ("GET", path), ("PUT", path), ("DELETE", path), ("GET", f"{path}/executions"), ("GET", f"{path}/stats"),
        ("POST", f"{path}/pause"), ("POST", f"{path}/retry"), ("GET", "/jobs/none"),
    ):  # fmt: skip
        place.client.refused(404, method, each, {} if method == "PUT" else None)


def test_a_list_is_chosen_and_paged(place: Place) -> None:
    made = [place.client.create(url=SITE, source_id="listed", interval_minutes=60) for _ in range(5)]
    place.client.order(made[2], "pause")
    listed = place.client.good("GET", "/jobs?source_id=listed&limit=2&offset=1")
    assert [job["id"] for job in listed["jobs"]] == [made[3]["id"], made[2]["id"]]
    assert (listed["total"], listed["limit"], listed["offset"]) == (5, 2, 1)
    paused = place.client.good("GET", "/jobs?source_id=listed&status=paused")
    assert ([job["id"] for job in paused["jobs"]], paused["total"]) == ([made[2]["id"]], 1)
    assert (paused["limit"], paused["offset"]) == (50, 0)
    assert place.client.good("GET", "/jobs?source_id=nobody")["jobs"] == []
    beyond = place.client.good("GET", "/jobs?source_id=listed&offset=9")
    assert (beyond["jobs"], beyond["total"]) == ([], 5)
    assert paused["jobs"] == [place.client.get(made[2])]


@pytest.mark.parametrize(
    "fields",
    [
        {}, {"source_id": "s"}, {"url": ""}, {"url": 7}, {"url": "x\x00"}, {"interval_minutes": 0},
        {"interval_minutes": -1}, {"interval_minutes": "6"}, {"interval_minutes": 1.5}, {"interval_minutes": True},
        {"interval_minutes": 5, "interval_type": "weeks"}, {"interval_minutes": 5, "interval_type": 7},
        {"schedule_time": "every 5m"}, {"schedule_time": "manual"}, {"schedule_time": "61 * * * *"},
        {"schedule_time": "0 0 1 1 * 2001"}, {"schedule_enabled": "yes"}, {"max_retries": -1}, {"max_retries": 101},
        {"retry_backoff_seconds": -1}, {"metadata": []}, {"metadata": "x"}, {"metadata": {"a": "x" * 70_000}},
        {"payload": ["a list"]}, {"payload": {"url": "https://other.example"}}, {"intervall": 5}, {"verb": "crawler"},
        {"source_name": "x" * 501},
    ],
)  # fmt: skip
def test_values_that_do_not_fit(place: Place, fields: dict[str, Any]) -> None:
    whole = fields if {"url", "source_id", "verb"} & set(fields) or not fields else {"url": SITE, **fields}
    problem = place.client.refused(422, "POST", "/jobs", whole)
    assert problem["violations"][0]["field"]
    assert problem["violations"][0]["description"]


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'"x"', b"null", b'{"url": NaN}', b"\xff\xfe", b"[" * 100_000])
def test_bodies_that_are_malformed(place: Place, raw: bytes) -> None:
    answer = place.client.send("POST", "/jobs", raw=raw)
    assert (answer.status, answer.kind) == (400, "application/problem+json"), answer


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("limit=x", 400), ("offset=x", 400), ("limit=1&limit=2", 400), ("page=2", 400), ("limit=", 400),
        ("limit=0", 422), ("limit=1001", 422), ("offset=-1", 422), ("status=idle", 422),
    ],
)  # fmt: skip
def test_queries_that_do_not_fit(place: Place, query: str, status: int) -> None:
    place.client.refused(status, "GET", f"/jobs?{query}")


def test_a_body_that_is_too_large_is_refused(place: Place) -> None:
    answer = place.client.send("POST", "/jobs", raw=b" " * 300_000)
    assert (answer.status, answer.kind) == (413, "application/problem+json")


def test_after_all_this_the_books_are_whole(place: Place) -> None:
    """Every tick ran, or was skipped with a reason: also those that waited for retries."""
    report = place.cluster.cli("audit", "--thorough")  # which fails unless they are
    assert [report[name] for name in ("unaccounted", "duplicates", "early", "undue")] == [0, 0, 0, 0], report
