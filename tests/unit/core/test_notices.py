"""Which events rows of the books make, and who wants them."""

import json
from typing import Any
from urllib.parse import quote

import pytest

from cronring.controller.core.notify.notices import (
    Event,
    Failing,
    GivenUp,
    NoticeJob,
    NoticeRun,
    Orphaning,
    OverdueTick,
    Passed,
    Paused,
    Subscription,
    addressed,
    decide,
    letter,
    orphaning_notice,
    overdue,
    paused,
    skipped,
    timeout_near,
)
from cronring.schema.execution import FAILURES, Outcome

CONSOLE = "https://cron.example"

S = 1_000_000
NOW = 1_772_352_000 * S  # 2026-03-01T08:00:00Z, a Sunday
JOB = NoticeJob(7, "billing.close", "default", "billing", "close", {"team": "money"}, "")
LATE = JOB._replace(policy='{"late_after":"5s"}')
ALL = Subscription((), (), "", "", "", {}, 0)


def run(number: int, outcome: str | None, **changes: Any) -> NoticeRun:
    """The `number`-th execution; each a minute after the one before."""
    tick = NOW + number * 60 * S
    found = NoticeRun(
        JOB, number, tick, tick, 1, "schedule", tick + 10, tick + 20, tick + S, outcome, None, None, None, "c1", "r1"
    )
    return found._replace(**changes)


def told(runs: list[NoticeRun], failing: dict[int, Failing] | None = None) -> list[tuple[str, int]]:
    """Without those that are told only to who asks for them."""
    notices = [notice for notice in decide(runs, [], failing or {}).notices if ALL.wants(notice)]
    return [(notice.event.value, notice.data["execution_id"]) for notice in notices]


def test_a_failure_is_told_and_the_first_success_after_it() -> None:
    runs = [run(1, "completed"), run(2, "failed"), run(3, "timed_out"), run(4, "completed"), run(5, "completed")]
    assert told(runs) == [("failed", 2), ("failed", 3), ("recovered", 4)]
    assert decide(runs, [], {}).failing == {}, "well before, and well again"


def test_what_fails_stays_so_until_the_next_look() -> None:
    first = decide([run(2, "lost")], [], {})
    assert first.failing == {7: Failing(2, run(2, None).tick)}
    before = {7: Failing(2, run(2, None).tick)}
    second = decide([run(3, "completed")], [], before)
    assert [notice.event for notice in second.notices] == [Event.COMPLETED, Event.RECOVERED]
    assert second.notices[1].data["failed_execution_id"] == 2
    assert second.failing == {7: None}


def test_a_run_that_began_before_the_failure_recovers_nothing() -> None:
    late_end = run(1, "completed", ended_at=NOW + 600 * S)
    assert told([run(2, "failed"), late_end]) == [("failed", 2)]


def test_a_cancelled_run_is_neither() -> None:
    assert told([run(2, "cancelled")], {7: Failing(1, NOW)}) == []
    assert decide([run(2, "cancelled")], [], {7: Failing(1, NOW)}).failing == {}


@pytest.mark.parametrize("outcome", ["failed", "timed_out", "lost", "out_of_memory", "out_of_cpu"])
def test_every_other_end_is_a_failure(outcome: str) -> None:
    assert told([run(1, outcome)]) == [("failed", 1)]


def test_an_attempt_that_is_retried_is_waited_for() -> None:
    attempt = run(1, "failed", retry_at=NOW + 90 * S)
    decided = decide([attempt], [], {})
    assert (decided.notices, decided.retrying, decided.failing) == ([], [attempt], {})


def test_a_retry_that_never_came_makes_its_attempt_the_last() -> None:
    attempt = run(1, "failed", retry_at=NOW + 90 * S)
    decided = decide([], [GivenUp(attempt, None)], {})
    assert [notice.key for notice in decided.notices] == ["failed:1"]
    assert decided.failing == {7: Failing(1, attempt.tick)}


def test_where_the_job_is_well_again_by_then_both_are_told() -> None:
    attempt = run(1, "failed", retry_at=NOW + 90 * S)
    decided = decide([], [GivenUp(attempt, run(2, None).tick)], {})
    assert [notice.event for notice in decided.notices] == [Event.FAILED, Event.RECOVERED]
    assert decided.failing == {}


def test_a_late_start_is_told_by_what_is_known_of_it() -> None:
    claimed = run(1, None, job=LATE, claimed_at=NOW + 60 * S + 6 * S, started_at=None, ended_at=None)
    (notice,) = decide([claimed], [], {}).notices
    assert (notice.event, notice.data["lateness_ms"], notice.data["started"]) == (Event.LATE, 6_000, True)
    begun = run(1, "completed", job=LATE, started_at=NOW + 60 * S + 7 * S, ended_at=NOW + 70 * S)
    assert [each.key for each in decide([begun], [], {}).notices] == [notice.key, "completed:1"]
    assert [each.event for each in decide([run(1, "completed", job=LATE)], [], {}).notices] == [Event.COMPLETED]
    retry = claimed._replace(trigger="retry", attempt=2)
    assert decide([retry], [], {}).notices == []


def test_a_tick_that_nobody_claims_is_late_once_its_time_is_over() -> None:
    row = OverdueTick(LATE, NOW, NOW)
    assert overdue(row, NOW + 5 * S) is None
    notice = overdue(row, NOW + 5 * S + 1)
    assert notice is not None
    assert (notice.key, notice.at, notice.data["started"]) == (f"late:7:{NOW}", NOW + 5 * S, False)
    assert overdue(OverdueTick(JOB, NOW, NOW), NOW + 3_600 * S) is None


def test_a_tick_outside_of_its_window_is_not_late() -> None:
    policy = '{"window":"Mon-Fri 08:00-18:00","late_after":"5s"}'
    assert overdue(OverdueTick(JOB._replace(policy=policy), NOW, NOW), NOW + 60 * S) is None
    monday = NOW + 86_400 * S
    assert overdue(OverdueTick(JOB._replace(policy=policy), monday, monday), monday + 60 * S) is not None


def test_a_range_that_grows_is_one_event() -> None:
    first = skipped(Passed(JOB, "overlap", NOW, NOW + 60 * S, 2, NOW + 61 * S))
    grown = skipped(Passed(JOB, "overlap", NOW, NOW + 600 * S, 11, NOW + 601 * S))
    other = skipped(Passed(JOB, "paused", NOW, NOW, 1, NOW))
    assert (
        letter("c", first, CONSOLE).event_id
        == letter("c", grown, CONSOLE).event_id
        != letter("c", other, CONSOLE).event_id
    )
    assert first.data["ticks"] == 2
    assert first.data["last_tick"] == "2026-03-01T08:01:00Z"


@pytest.mark.parametrize(("action", "event"), [("orphan", Event.ORPHANED), ("bring_back", Event.BROUGHT_BACK)])
def test_a_verb_that_goes_or_is_back_is_an_event_of_its_action(action: str, event: Event) -> None:
    notice = orphaning_notice(Orphaning(JOB, 9, action, NOW, "billing@1", "ada", "moved"))
    assert (notice.event, notice.key, notice.at) == (event, f"{event.value}:9", NOW)
    assert notice.data == {"deployment": "billing@1", "by": "ada", "note": "moved"}


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, True),
        ({"events": ("failed", "paused")}, True),
        ({"events": ("failed",)}, False),
        ({"namespace": "default", "module": "billing", "job": "billing.close", "labels": {"team": "money"}}, True),
        ({"namespace": "other"}, False),
        ({"module": "other"}, False),
        ({"job": "billing.open"}, False),
        ({"labels": {"team": "other"}}, False),
        ({"labels": {"tier": "1"}}, False),
        ({"reasons": ("overlap",)}, True),
        ({"since": NOW + 1}, False),
    ],
)
def test_a_webhook_gets_what_it_wants(options: dict[str, Any], wanted: bool) -> None:
    notice = paused(Paused(JOB, NOW, 3, "ticks in a row without success: 3"))
    assert ALL._replace(**options).wants(notice) is wanted


def test_completed_is_told_only_to_who_asks_for_it_by_name() -> None:
    (notice,) = decide([run(1, "completed")], [], {}).notices
    assert (notice.event, notice.key, notice.at) == (Event.COMPLETED, "completed:1", NOW + 61 * S)
    assert (notice.data["outcome"], notice.data["execution_id"]) == ("completed", 1)
    assert not ALL.wants(notice)
    assert not ALL._replace(events=("failed",)).wants(notice)
    assert ALL._replace(events=("failed", "completed")).wants(notice)
    assert ALL._replace(events=("completed",), outcomes=("lost",)).wants(notice), "outcomes are of what failed"
    assert not ALL._replace(events=("completed",), labels={"team": "other"}).wants(notice)


def test_outcomes_are_those_of_what_failed() -> None:
    (notice,) = decide([run(1, "timed_out")], [], {}).notices
    assert ALL._replace(outcomes=("timed_out", "lost")).wants(notice)
    assert not ALL._replace(outcomes=("lost",)).wants(notice)
    assert ALL._replace(outcomes=("lost",)).wants(paused(Paused(JOB, NOW, 3, "")))
    assert set(FAILURES) == {*Outcome} - {Outcome.COMPLETED, Outcome.CANCELLED}


def test_reasons_are_those_of_skips() -> None:
    notice = skipped(Passed(JOB, "overlap", NOW, NOW, 1, NOW))
    assert ALL._replace(reasons=("overlap",)).wants(notice)
    assert not ALL._replace(reasons=("paused",)).wants(notice)


def test_a_letter_says_everything_and_is_the_same_for_all() -> None:
    notices = decide([run(2, "failed", error_type="ValueError", error_message="x" * 9_000)], [], {}).notices
    found = addressed("c1", {1: ALL, 2: ALL._replace(job="other.job"), 3: ALL}, notices, CONSOLE)
    assert [webhook_id for webhook_id, _ in found] == [1, 3]
    assert found[0][1] == found[1][1]
    body = json.loads(found[0][1].body)
    assert body.keys() == {"id", "type", "timestamp", "data"}
    assert body["id"] == found[0][1].event_id
    data = body["data"]
    assert (body["type"], data["job"], data["cluster"], data["labels"]) == (
        "job.failed", "billing.close", "c1", {"team": "money"},
    )  # fmt: skip
    assert (data["tick"], data["attempt"], data["outcome"]) == ("2026-03-01T08:02:00Z", 1, "failed")
    assert (data["error_type"], len(data["error_message"])) == ("ValueError", 4_000)
    assert body["timestamp"] == "2026-03-01T08:02:01.000000Z"
    assert letter("c2", notices[0], CONSOLE).event_id != body["id"]
    assert data["url"] == f"{CONSOLE}/executions/2"


def test_a_letter_of_no_execution_leads_to_its_job() -> None:
    told = letter("c", skipped(Passed(JOB, "overlap", NOW, NOW, 1, NOW)), CONSOLE)
    assert json.loads(told.body)["data"]["url"] == f"{CONSOLE}/jobs/{quote(JOB.key, safe='')}"


def test_a_timeout_is_near_when_nine_tenths_of_it_are_used() -> None:
    running = run(1, None, started_at=None, ended_at=None, attempt=2, trigger="retry")
    notice = timeout_near(running, 200_000)
    assert notice.at == running.claimed_at + 180 * S
    assert (notice.event, notice.key) == (Event.TIMEOUT_NEAR, "timeout_near:1")
    assert notice.data["timeout_ms"] == 200_000
    assert notice.data["timeout_at"] == "2026-03-01T08:04:20.000010Z"
    assert (notice.data["running"], notice.data["attempt"], notice.data["trigger"]) == (True, 2, "retry")
    ended = timeout_near(run(1, "timed_out"), 200_000)
    assert (ended.key, ended.data["running"]) == (notice.key, False), "one event, whenever it was noticed"


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, True),
        ({"events": ("timeout_near",)}, True),
        ({"events": ("failed", "late")}, False),
        ({"outcomes": ("lost",)}, True),
        ({"reasons": ("no_runner",)}, True),
        ({"labels": {"team": "money"}}, True),
        ({"labels": {"team": "sales"}}, False),
        ({"job": "billing.open"}, False),
        ({"since": NOW + 60 * S + 10 + 180 * S}, True),
        ({"since": NOW + 60 * S + 11 + 180 * S}, False),
    ],
)
def test_a_near_timeout_is_filtered_as_other_events_are(changes: dict[str, Any], wanted: bool) -> None:
    assert ALL._replace(**changes).wants(timeout_near(run(1, None), 200_000)) is wanted
