"""The judge finds what is planted: a judge that acquits everybody would make every fault test pass."""

import json
from collections import Counter
from pathlib import Path

from tests.support.judge import (
    Circumstances,
    JournalRun,
    Verdict,
    judge_executions,
    judge_journal,
    judge_ticks,
    read_journal,
    was_cancelled,
)


def run(execution: int, started: float, ended: float | None, tick: float = 0.0) -> JournalRun:
    return JournalRun("verb", execution, tick, started, ended)


def journal_verdict(runs: list[JournalRun], outcomes: dict[int, str | None], deaths: list[float]) -> Verdict:
    verdict = Verdict()
    judge_journal(verdict, runs, outcomes, Circumstances(deaths))
    return verdict


def test_innocent() -> None:
    verdict = journal_verdict([run(1, 1.0, 2.0), run(2, 3.0, 4.0)], {1: "completed", 2: "completed"}, [])
    assert verdict.guilty() == {}


def test_a_tick_without_books_is_unaccounted_and_one_with_two_entries_is_a_duplicate() -> None:
    verdict = Verdict()
    skips = [{"reason": "overlap", "first_tick": 3.0, "last_tick": 4.0, "ticks": 2}]
    judge_ticks(verdict, "verb", [1, 2, 3, 4], Counter({1: 1, 3: 1}), skips)
    assert verdict.due == 4
    assert list(verdict.guilty()) == ["unaccounted", "twice"]
    assert verdict.skipped == {"overlap": 2}


def test_overlap_is_found() -> None:
    verdict = journal_verdict([run(1, 1.0, 3.0), run(2, 2.0, 4.0)], {1: "completed", 2: "completed"}, [])
    assert list(verdict.guilty()) == ["overlapping"]


def test_a_run_that_never_ended_overlaps_unless_its_runner_died_between() -> None:
    runs = [run(1, 1.0, None), run(2, 12.0, 13.0)]
    assert list(journal_verdict(runs, {1: "lost", 2: "completed"}, []).guilty()) == ["overlapping"]
    assert journal_verdict(runs, {1: "lost", 2: "completed"}, [2.0]).guilty() == {}


def test_a_run_without_an_end_ends_with_the_child_that_it_ran_in() -> None:
    """Also a brief one, which notes nothing between its start and its end."""
    runs = [JournalRun("verb", 1, 0.0, 1.0, None, None, 77), run(2, 12.0, 13.0)]
    for child, guilty in ((77, []), (78, ["overlapping"])):
        verdict = Verdict()
        judge_journal(verdict, runs, {1: "failed", 2: "completed"}, Circumstances(child_deaths={child: 1.1}))
        assert list(verdict.guilty()) == guilty


def test_the_same_execution_twice_is_found() -> None:
    verdict = journal_verdict([run(1, 1.0, 2.0), run(1, 3.0, 4.0)], {1: "completed"}, [])
    assert list(verdict.guilty()) == ["twice"]


def test_a_finished_result_that_is_not_booked_is_found_unless_it_died_with_its_runner() -> None:
    finished = [run(1, 1.0, 2.0)]
    assert list(journal_verdict(finished, {1: "lost"}, []).guilty()) == ["results_lost"]
    assert list(journal_verdict(finished, {1: None}, []).guilty()) == ["results_lost"]
    assert journal_verdict(finished, {1: "lost"}, [2.1]).guilty() == {}


def test_early_starts_are_found_in_books_and_journal() -> None:
    verdict = journal_verdict([run(1, 1.0, 2.0, tick=1.5)], {1: "completed"}, [])
    assert list(verdict.guilty()) == ["early"]
    books = Verdict()
    early = {"verb": "verb", "tick": 10.0, "run_at": 10.0, "claimed_at": 9.9, "started_at": 10.1, "outcome": None}
    judge_executions(books, [early])
    assert list(books.guilty()) == ["early"]
    assert books.worst_lateness_s > 0


def test_reading_a_journal(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    start = {"event": "start", "verb": "verb", "execution": 1, "tick": 5.0, "at": 5.1}
    path.write_text("\n".join(json.dumps(entry) for entry in (start, start | {"event": "end", "at": 5.2})) + "\n")
    assert read_journal(path) == [JournalRun("verb", 1, 5.0, 5.1, 5.2)]
    assert read_journal(tmp_path / "absent") == []


def test_as_many_may_run_beside_each_other_as_the_policy_says() -> None:
    verdict = Verdict()
    runs = [JournalRun("beside", number, 1.0, 1.0 + number, 5.0) for number in range(3)]
    judge_journal(verdict, runs, dict.fromkeys(range(3), "completed"), Circumstances(beside={"beside": 3}))
    assert verdict.overlapping == []
    judge_journal(verdict, runs, dict.fromkeys(range(3), "completed"), Circumstances(beside={"beside": 2}))
    assert verdict.overlapping == [("beside", "0, 1 and 2")]


def test_a_result_may_be_lost_with_a_runner_that_stood_still() -> None:
    for absences, lost in (([(1.0, 12.0)], []), ([(4.0, 12.0)], [("verb", "execution 7")])):
        verdict = Verdict()
        runs = [JournalRun("verb", 7, 1.0, 1.0, 2.0)]
        judge_journal(verdict, runs, {7: "lost"}, Circumstances(absences=absences))
        assert verdict.results_lost == lost


def test_nothing_is_due_while_a_job_is_cancelled() -> None:
    actions = [{"action": "cancel", "at": 2.5}, {"action": "restore", "at": 4.5}]
    assert [tick for tick in range(1, 7) if not was_cancelled(tick, actions)] == [1, 2, 5, 6]


def test_a_torn_line_of_the_journal_hides_no_other(tmp_path: Path) -> None:
    """Left by a process that was killed in its write."""
    journal = tmp_path / "journal"
    whole = '{"event": "start", "verb": "v", "execution": %d, "tick": 1.0, "at": 2.0}\n'
    journal.write_text(whole % 1 + '{"event": "on", "ver' + whole % 2 + '{"eve')
    assert [run.execution_id for run in read_journal(journal)] == [1, 2]
