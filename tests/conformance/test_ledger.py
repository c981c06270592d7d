"""The audit finds whatever is wrong with the books, and "why" reads them right: in memory and in PostgreSQL."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

import pytest

from cronring.controller.core.ledger.audit import Audit
from cronring.controller.core.ledger.why import explain, verdict
from cronring.controller.errors import NotFound
from cronring.controller.ports.ledger import AuditRequest
from cronring.controller.ports.store import Backfill
from cronring.controller.services import audit as audits
from cronring.controller.store import ledger as stored
from cronring.schema.execution import Outcome
from cronring.schema.module import Module, Verb
from cronring.schema.policy import Policy
from cronring.schema.zone import zone_data_version
from tests.conformance.harness import SECOND, TIMEOUT_MS, World
from tests.conformance.tampering import Hands, PostgresHands, hands_of

MINUTE = 60 * SECOND
LATE_AFTER = 10 * SECOND


class Books(NamedTuple):
    """`ran`: each minute of the last hour executed but for 40 to 49, which are skipped in two ranges; and `other`."""

    world: World
    hands: Hands
    ran: int
    other: int
    first: int  # the first of the sixty ticks

    def tick(self, minute: int) -> int:
        return self.first + minute * MINUTE

    async def audit(
        self, since: int | None = None, until: int | None = None, key: str = "", *, thorough: bool = False
    ) -> Audit:
        return (await self.hands.ledger.audit(AuditRequest(since, until, key, LATE_AFTER, thorough))).audit


@pytest.fixture
async def books(world: World) -> Books:
    await world.controller("c1")
    ran, other = await world.jobs("ran", "other", schedule="every 1m")
    now = await world.scene.now()
    made = Books(world, hands_of(world.scene), ran.job_id, other.job_id, now - now % MINUTE - 59 * MINUTE)
    await world.runner("r1", ran.deployment)
    for job_id in (made.ran, made.other):
        await made.hands.open_books(job_id, made.tick(-1), made.tick(59))
        await world.scene.set_next_tick(job_id, made.tick(60))
    for minute in (*range(40), *range(50, 60)):
        await made.hands.add_run(made.ran, made.tick(minute))
    await made.hands.add_skip(made.ran, "overlap", made.tick(40), made.tick(44), 5)
    await made.hands.add_skip(made.ran, "no_runner", made.tick(45), made.tick(49), 5)
    await made.hands.add_skip(made.other, "paused", made.tick(0), made.tick(59), 60)
    return made


async def test_sound_books_are_clean(books: Books) -> None:
    for thorough in (False, True):
        found = await books.audit(thorough=thorough)
        assert (found.ticks, found.executed, found.on_time) == (120, 50, 50)
        assert found.skipped == {"overlap": 5, "no_runner": 5, "paused": 60}
        assert found.clean
        assert (found.findings, found.jobs, found.walked) == ([], 2, 2 if thorough else 0)
        assert found.outcomes == {"completed": 50}


async def test_pages_and_portions_change_nothing(books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    for minute in (40, 41, 46):
        await books.hands.add_run(books.ran, books.tick(minute), "backfill")
    await books.hands.add_run(books.ran, books.tick(3), "retry", 2)
    await books.hands.remove_run(books.ran, books.tick(50))
    whole = [await books.audit(thorough=thorough) for thorough in (False, True)]
    assert [(found.ticks, found.backfilled, found.unaccounted) for found in whole] == [(120, 3, 1)] * 2
    for size in (1, 2, 3, 7):
        monkeypatch.setattr(audits, "PAGE_JOBS", 1)
        monkeypatch.setattr(audits, "SPANS_AT_ONCE", 1)
        monkeypatch.setattr(audits, "CHUNK_ROWS", size)
        monkeypatch.setattr(audits, "_FED_AT_ONCE", size)
        monkeypatch.setattr(stored, "RUNS_COUNTED_AT_ONCE", size)
        assert [await books.audit(thorough=thorough) for thorough in (False, True)] == whole


async def test_a_span_of_time_cuts_ranges(books: Books) -> None:
    for thorough in (False, True):
        found = await books.audit(books.tick(42), books.tick(52), thorough=thorough)
        assert (found.ticks, found.executed, found.clean) == (22, 3, True)
        assert found.skipped == {"overlap": 3, "no_runner": 5, "paused": 11}
        found = await books.audit(books.tick(30), books.tick(46), "billing.ran", thorough=thorough)
        assert (found.ticks, found.executed, found.skipped) == (17, 10, {"overlap": 5, "no_runner": 2})


async def test_how_ticks_were_executed(books: Books) -> None:
    for minute in range(4):
        await books.hands.remove_run(books.ran, books.tick(minute))
    await books.hands.add_run(books.ran, books.tick(0), outcome="failed")
    await books.hands.add_run(books.ran, books.tick(0), "retry", 2)
    await books.hands.add_run(books.ran, books.tick(1), "catch_up")
    await books.hands.add_run(books.ran, books.tick(2))
    late = books.tick(2) + 11 * SECOND
    await books.hands.begin_at(books.ran, books.tick(2), late, books.tick(2))
    await books.hands.add_run(books.ran, books.tick(3), outcome=None)
    await books.hands.add_run(books.ran, books.tick(3) + 1, "manual", 1, "lost")
    for thorough in (False, True):
        found = await books.audit(key="billing.ran", thorough=thorough)
        assert (found.on_time, found.late, found.caught_up, found.running) == (47, 1, 1, 1)
        assert (found.ticks, found.clean) == (60, True)
        assert found.outcomes == {"completed": 49, "failed": 1, "running": 1, "lost": 1}


async def test_what_was_made_up_for_is_executed(books: Books) -> None:
    for minute in (40, 41, 46):
        await books.hands.add_run(books.ran, books.tick(minute), "backfill")
    found = await books.audit(key="billing.ran")
    assert (found.executed, found.backfilled, found.walked, found.clean) == (53, 3, 1, True)
    assert found.skipped == {"overlap": 3, "no_runner": 4}


async def test_findings_of_zones_are_not_told_as_faults_alone_where_other_rules_were_in_use(books: Books) -> None:
    """A tick that other rules put elsewhere looks like one that is missing, and one that never was due."""

    async def remark() -> str:
        return (await books.hands.ledger.audit(AuditRequest(None, None, "", LATE_AFTER, False))).remark

    verb = Verb("zoned", schedule="* * * * *", policy=Policy(timezone="Europe/Berlin"))
    module = Module("reports", (verb,))
    (zoned,) = (await books.world.store.create_deployment(module, "b" * 64, 1, TIMEOUT_MS, True)).jobs
    await books.hands.open_books(zoned.job_id, books.tick(-1), books.tick(59))
    await books.world.scene.set_next_tick(zoned.job_id, books.tick(60))
    await books.hands.add_skip(zoned.job_id, "paused", books.tick(0), books.tick(59), 60)
    store = books.world.store
    await store.note_zone_data(zone_data_version())
    await store.note_zone_data("2099.1")
    await store.note_zone_data("2099.1")
    assert (await books.audit()).clean
    assert await remark() == ""
    await books.hands.remove_run(books.ran, books.tick(50))  # which knows no zone
    assert await remark() == ""
    await books.hands.add_run(zoned.job_id, books.tick(30) + 7 * SECOND)
    assert (await books.audit()).undue == 1
    assert "the books are right" in await remark()
    assert (await remark()).count("2099.1 (since 20") == 1


class Wrong(NamedTuple):
    """A deed, and what the audit says of it: counts, the first finding's tick (minute) and what it is about."""

    deed: Callable[[Books], Awaitable[None]]
    kind: str
    ticks: int
    minute: int
    text: str


WRONG = {
    "a run is gone": Wrong(
        lambda books: books.hands.remove_run(books.ran, books.tick(7)),
        "unaccounted", 1, 7, "was due: neither executed nor skipped",
    ),
    "the latest run is gone": Wrong(
        lambda books: books.hands.remove_run(books.ran, books.tick(59)),
        "unaccounted", 1, 59, "was due: neither executed nor skipped",
    ),
    "ranges are gone": Wrong(
        lambda books: books.hands.remove_skips(books.ran), "unaccounted", 10, 40, "neither executed nor skipped"
    ),
    "run twice by schedule": Wrong(
        lambda books: books.hands.add_run(books.ran, books.tick(7), "schedule", 2),
        "duplicates", 1, 7, "ran by schedule as execution 8, and as execution",
    ),
    "run and skipped": Wrong(
        lambda books: books.hands.add_run(books.ran, books.tick(42)),
        "duplicates", 1, 42, "and is skipped (overlap)",
    ),
    "skipped, though it ran": Wrong(
        lambda books: books.hands.add_skip(books.ran, "superseded", books.tick(3), books.tick(5), 3),
        "duplicates", 3, 3, "is skipped (superseded)",
    ),
    "skipped twice": Wrong(
        lambda books: books.hands.add_skip(books.ran, "superseded", books.tick(44), books.tick(45), 2),
        "duplicates", 2, 44, "and in another range",
    ),
    "a range that counts too many": Wrong(
        lambda books: books.hands.add_skip(books.other, "paused", books.tick(-1) + SECOND, books.tick(0) - SECOND, 4),
        "undue", 4, -1, "the range counts 4 ticks, and 0 were due",
    ),
    "no tick of its schedule": Wrong(
        lambda books: books.hands.add_run(books.ran, books.tick(7) + SECOND),
        "undue", 1, 7, "no schedule of the job had this tick",
    ),
    "before its run_at": Wrong(
        lambda books: books.hands.begin_at(books.ran, books.tick(7), books.tick(7), books.tick(7) + SECOND),
        "early", 1, 7, "began 1s before its run_at",
    ),
    "before its tick": Wrong(
        lambda books: books.hands.begin_at(books.ran, books.tick(7), books.tick(7) - 1, books.tick(7) - 1),
        "early", 1, 7, "before its tick",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
async def test_whatever_is_wrong_is_found(books: Books, name: str) -> None:
    wrong = WRONG[name]
    await wrong.deed(books)
    for thorough in (False, True):
        found = await books.audit(thorough=thorough)
        counts = {kind: getattr(found, kind) for kind in ("unaccounted", "duplicates", "early", "undue")}
        assert {kind: count for kind, count in counts.items() if count} == {wrong.kind: wrong.ticks}
        finding = found.findings[0]
        assert (finding.kind, (finding.tick - books.tick(0)) // MINUTE) == (wrong.kind, wrong.minute)
        assert wrong.text in finding.text
        assert found.walked == (2 if thorough else 1), "only the job whose counts disagree is walked"


async def test_a_pair_that_cancels_out_takes_a_thorough_audit(books: Books) -> None:
    await books.hands.remove_run(books.ran, books.tick(7))
    await books.hands.add_run(books.ran, books.tick(7) + SECOND)
    assert (await books.audit()).clean
    found = await books.audit(thorough=True)
    assert (found.unaccounted, found.undue) == (1, 1)


async def test_what_stands_before_its_job_is_pending_and_what_it_has_gone_past_is_not(books: Books) -> None:
    """With a runner or without one: whoever waits for a place, or for its turn after an outage, has one."""
    await books.hands.remove_skips(books.other)
    await books.hands.open_books(books.other, books.tick(-1), None)
    await books.world.scene.set_next_tick(books.other, books.tick(0))
    found = await books.audit()
    assert (found.unaccounted, found.pending, found.clean) == (0, 60, True)
    await books.world.scene.last_saw_runner("r1", 60)
    found = await books.audit()
    assert (found.unaccounted, found.pending, found.clean) == (0, 60, True)
    await books.world.scene.set_next_tick(books.other, books.tick(7))
    found = await books.audit()
    assert (found.unaccounted, found.pending, found.clean) == (7, 53, False)


async def test_a_tick_that_ran_of_two_jobs_of_one_key_ran_twice(books: Books) -> None:
    """PostgreSQL's clock was set back by half an hour between the removal of the one and the making of the other."""
    (deployment,) = await _deployments(books)
    assert "billing.ran" in (await books.world.store.kill_deployment(deployment)).removed
    (again, _) = await books.world.jobs("ran", "other", schedule="every 1m")
    await books.hands.open_books(again.job_id, books.tick(30), books.tick(59))
    for minute in range(31, 60):
        await books.hands.add_run(again.job_id, books.tick(minute))
    await books.world.scene.set_next_tick(again.job_id, books.tick(60))
    found = await books.audit(key="billing.ran")
    assert found.duplicates == 9 + 10, "31 to 39, and 50 to 59"


async def _deployments(books: Books) -> set[str]:
    _, jobs = await books.world.store.get_cron_jobs(tuple(range(4096)), 10**9)
    return {job.deployment for job in jobs}


async def test_what_retention_has_summarised_counts_as_it_was(books: Books) -> None:
    """What is summarised is of PostgreSQL alone: nothing is removed in memory."""
    if not isinstance(books.hands, PostgresHands):
        assert (await books.audit()).summarised_until is None
        return
    run = books.hands.connection.execute
    close = (
        "INSERT INTO cron_closed_books (job_id, until_at, due, executed, caught_up, late, skipped, outcomes) VALUES "
    )
    close += "($1, $2, $3, $4, $5, $6, $7::text::jsonb, $8::text::jsonb)"
    await run("DELETE FROM cron_executions WHERE job_id = $1 AND tick <= $2", books.ran, books.tick(9))
    await run(close, books.ran, books.tick(9), 10, 10, 2, 1, "{}", '{"completed": 9, "failed": 1}')
    await run(close, 0, books.tick(0), 500, 490, 0, 0, '{"overlap": 10}', '{"completed": 490}')
    for thorough in (False, True):
        found = await books.audit(thorough=thorough)
        assert (found.ticks, found.executed, found.late, found.caught_up) == (620, 540, 1, 2)
        assert (found.skipped["overlap"], found.outcomes["failed"]) == (15, 1)
        assert (found.clean, found.summarised_until) == (True, books.tick(9))
        part = await books.audit(books.tick(5), thorough=thorough)
        assert (part.ticks, part.clean, part.summarised_until) == (50 + 55, True, books.tick(9))
    word, text = await told(books, "billing.ran", books.tick(3))
    assert (word, "only counts are kept" in text) == ("summarised", True)


async def test_an_unknown_key_is_not_found(books: Books) -> None:
    with pytest.raises(NotFound):
        await books.audit(key="billing.rant")
    with pytest.raises(NotFound):
        await books.hands.ledger.facts("billing.rant", None)


# Why


async def told(books: Books, key: str, at: int | None) -> tuple[str, str]:
    facts = await books.hands.ledger.facts(key, at)
    return verdict(facts), " ".join(explain(facts))


async def test_why_reads_runs_and_their_attempts(books: Books) -> None:
    await books.hands.add_run(books.ran, books.tick(3), "retry", 2, "failed")
    word, text = await told(books, "billing.ran", books.tick(3))
    assert word == "executed"
    assert "Execution 4 started 1ms after it was due, took 0ms and completed." in text
    assert "Controller c1 claimed it" in text
    assert "Attempt 2, execution 51," in text
    assert "Its next tick is" in text


async def test_why_reads_skips_and_what_stands_beside_them(books: Books) -> None:
    word, text = await told(books, "billing.ran", books.tick(42))
    assert word == "skipped"
    assert "(overlap)" in text
    assert "So were 5 ticks in all" in text
    assert "Controller c1 decided that" in text
    word, text = await told(books, "billing.ran", books.tick(47))
    assert "(no_runner)" in text


async def test_why_between_ticks_names_those_next_to_it(books: Books) -> None:
    word, text = await told(books, "billing.ran", books.tick(3) + 20 * SECOND)
    assert word == "not_due"
    assert "No tick of billing.ran was due at" in text
    assert "The tick before it is" in text
    assert "Execution 4 started" in text


async def test_why_between_ticks_tells_that_the_one_before_was_skipped(books: Books) -> None:
    word, text = await told(books, "billing.ran", books.tick(44) + 20 * SECOND)
    assert (word, " was skipped (overlap)" in text, "So were 5 ticks in all" in text) == ("not_due", True, True)
    assert "The run before that, of the tick " in text


async def test_why_knows_the_latest_tick_by_itself(books: Books) -> None:
    facts = await books.hands.ledger.facts("billing.ran", None)
    assert facts.tick in {books.tick(59), books.tick(60)}


async def test_why_of_a_tick_that_is_nowhere_says_so(books: Books) -> None:
    await books.hands.remove_run(books.ran, books.tick(7))
    word, text = await told(books, "billing.ran", books.tick(7))
    assert word == "unaccounted"
    assert "cronring audit --job billing.ran" in text


async def test_why_of_a_paused_job_names_who_and_why(books: Books) -> None:
    await books.world.control.pause_job("billing.ran", "ada", "the disk is full")
    _, text = await told(books, "billing.ran", None)
    assert "paused since" in text
    assert "by ada (“the disk is full”), until somebody resumes it" in text
    await books.world.control.resume_job("billing.ran", "ada")
    _, text = await told(books, "billing.ran", None)
    assert "paused since" not in text.split("Its next tick")[1]


async def test_why_tells_what_waits_beside_the_schedule(books: Books) -> None:
    await books.world.control.trigger_job("billing.ran", "ada", None)
    await books.world.control.backfill_job(
        "billing.ran", "ada", Backfill(books.tick(40), books.tick(44), beside=False, again=False)
    )
    _, text = await told(books, "billing.ran", books.tick(42))
    assert "A run triggered by ada" in text
    assert "A backfill asked for by ada waits with the ticks from" in text


async def test_why_of_a_removed_job_still_knows_its_books(books: Books) -> None:
    (deployment,) = await _deployments(books)
    await books.world.store.kill_deployment(deployment)
    word, text = await told(books, "billing.ran", books.tick(42))
    assert (word, "(overlap)" in text) == ("skipped", True)
    assert "It was removed at" in text
    now = await books.world.scene.now()
    word, text = await told(books, "billing.ran", now + 3_600 * SECOND)
    assert (word, "was removed at" in text) == ("not_due", True)


async def test_why_before_the_job_was_there(books: Books) -> None:
    _, text = await told(books, "billing.ran", books.tick(-1) - 3_600 * SECOND)
    assert "did not exist at" in text


async def test_why_of_a_tick_from_before_the_job_that_was_backfilled(books: Books) -> None:
    long_ago = books.tick(-1) - 3_600 * SECOND
    await books.hands.add_run(books.ran, long_ago, trigger="backfill")
    word, text = await told(books, "billing.ran", long_ago)
    assert word == "executed"
    assert "did not exist at" in text
    assert "A backfill made up for it: execution " in text


async def test_why_of_a_tick_that_its_removal_ended(books: Books) -> None:
    overdue = books.tick(59)
    await books.hands.remove_run(books.ran, overdue)
    await books.hands.open_books(books.ran, books.tick(-1), books.tick(58))
    await books.world.scene.set_next_tick(books.ran, overdue)
    (deployment,) = await _deployments(books)
    await books.world.store.kill_deployment(deployment, "ada", "no longer needed")
    word, text = await told(books, "billing.ran", overdue)
    assert (word, "(deployment_removed)" in text) == ("skipped", True)
    assert "by ada (“no longer needed”)" in text
    assert (await books.audit(key="billing.ran")).skipped["deployment_removed"] >= 1
    assert (await books.audit(thorough=True)).clean


async def test_why_of_what_runs_and_of_what_waits_for_it(world: World) -> None:
    hands = hands_of(world.scene)
    (execution,) = await world.running("c1", "a", policy=Policy(overlap="buffer_one"), seconds_ago=120)
    await hands.open_books(execution.job.job_id, execution.tick - 3_600 * SECOND, execution.tick)
    facts = await hands.ledger.facts("billing.a", execution.tick)
    assert verdict(facts) == "running"
    assert facts.subject.execution_id == execution.execution_id
    assert facts.attempts[0].execution_id == execution.execution_id
    assert (facts.attempts[0].number, facts.attempts[0].deployment) == (1, execution.deployment)
    await world.end(execution, Outcome.FAILED)
    facts = await hands.ledger.facts("billing.a", execution.tick)
    assert facts.attempts[0].outcome == "failed"


async def test_manual_jobs_have_no_ticks(world: World) -> None:
    module = Module("tools", (Verb("by_hand", schedule="manual"),))
    await world.store.create_deployment(module, "c" * 64, 1, TIMEOUT_MS, True)
    facts = await hands_of(world.scene).ledger.facts("tools.by_hand", None)
    assert explain(facts)[0] == "tools.by_hand has no schedule: it runs when somebody triggers it."
