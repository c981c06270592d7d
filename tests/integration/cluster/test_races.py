"""Operators who race a tick, an end, or each other, each through another of three living controllers.

Each race is run until both orders were seen (and no fewer rounds than ROUNDS). What was answered, the books and the log
of actions must tell one story every time. Delays only spread the racers: nothing here waits for time to pass.
"""

import asyncio
import itertools
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cronring.client import AsyncClient
from cronring.client.errors import Conflict, NotFound
from cronring.client.model import Action, Execution, Job, JobSpec
from tests.integration.cluster.trial import audit_when_settled
from tests.support.cluster import Cluster
from tests.support.waiting import wait_until

MODULE = Path(__file__).parent / "modules" / "races.py"
EACH = "races.each_second"
ROUNDS = 6
ROUNDS_MAX = 60


class Racers:
    """Three clients, each of another controller."""

    def __init__(self, cluster: Cluster, clients: Sequence[AsyncClient]) -> None:
        self.cluster = cluster
        self.clients = clients
        self.chance = random.Random(11)

    def two(self) -> tuple[AsyncClient, AsyncClient]:
        one, other = self.chance.sample(self.clients, 2)
        return one, other

    @property
    def client(self) -> AsyncClient:
        return self.chance.choice(self.clients)

    async def at_once(self, *attempts: Awaitable[Any]) -> list[Any]:
        """What each came to: its answer, or the Conflict or NotFound it was refused with."""
        order = list(enumerate(attempts))
        self.chance.shuffle(order)
        done = await asyncio.gather(*(outcome(attempt) for _, attempt in order))
        found: list[Any] = [None] * len(order)
        for (place, _), each in zip(order, done, strict=True):
            found[place] = each
        return found

    async def actions(self, key: str, after: int) -> list[Action]:
        """The oldest first."""
        return [each for each in reversed(await self.client.jobs.actions(key, limit=200)) if each.id > after]

    async def last_action(self, key: str) -> int:
        found = await self.client.jobs.actions(key, limit=1)
        return found[0].id if found else 0

    async def settled(self, key: str, tick: datetime) -> list[Execution]:
        """The attempts at a tick, all of them ended."""
        found: list[Execution] = []

        async def ended() -> bool:
            found[:] = await self.client.executions.list(key, since=tick, until=tick)
            return all(each.outcome for each in found)

        await wait_until(ended, lambda: f"{key} still runs: {found}", 20)
        return found


async def outcome(attempt: Awaitable[Any]) -> Any:
    try:
        return await attempt
    except (Conflict, NotFound) as error:
        return error


def rounds(seen: "Counter[str]", *wanted: str) -> Iterator[int]:
    """At least ROUNDS, and then until all that is wanted was seen."""
    for number in itertools.count():
        if number >= ROUNDS and all(seen[each] for each in wanted):
            return
        assert number < ROUNDS_MAX, f"only one order in {number} rounds: {dict(seen)}"
        yield number


@pytest.fixture(scope="module")
def racing_cluster(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(module_database_url, tmp_path_factory.mktemp("races")) as cluster:
        for _ in range(3):
            cluster.start_controller()
        cluster.start_runner(MODULE)
        yield cluster


@pytest.fixture
async def racers(racing_cluster: Cluster) -> AsyncIterator[Racers]:
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(AsyncClient((each.grpc,))) for each in racing_cluster.controllers]

        async def hosted() -> bool:
            found = await clients[0].deployments.list(active_only=True)
            return any(each.runners for each in found)

        await wait_until(hosted, "its runner doesn't register", 40)
        yield Racers(racing_cluster, clients)


async def test_a_pause_that_races_a_tick_has_one_outcome(racers: Racers) -> None:
    """The tick runs and is the last one, or it is skipped as paused; `why` and the books say which."""
    seen: Counter[str] = Counter()
    for _ in rounds(seen, "executed", "skipped"):
        one, other = racers.two()
        await one.jobs.resume(EACH, "between")
        before = await racers.last_action(EACH)
        tick = int(time.time()) + 1
        # Around the tick, so that either may be first.
        await asyncio.sleep(max(0.0, tick - time.time() + racers.chance.uniform(-0.02, 0.03)))
        paused = await other.jobs.pause(EACH, "race", "ann")
        assert paused.status == "paused"
        assert paused.paused is not None
        nominal = datetime.fromtimestamp(tick, UTC)
        # A pause that is over before the tick comes skips nothing: the tick's own instant is waited for.
        await asyncio.sleep(max(0.0, tick + 0.01 - time.time()))
        runs = await racers.settled(EACH, nominal)
        await one.jobs.resume(EACH, "bob", "race")
        why = await racers.client.ledger.why(EACH, nominal)
        if runs:
            assert len(runs) == 1
            assert runs[0].claimed_at is not None
            assert paused.paused.at is not None
            assert runs[0].claimed_at <= paused.paused.at, "claimed after the pause was in force"
            assert why.verdict == "executed"
        else:
            assert (why.verdict, why.skip.reason if why.skip else "") == ("skipped", "paused")
        seen["executed" if runs else "skipped"] += 1
        told = [(each.action, each.actor, each.note) for each in await racers.actions(EACH, before)]
        assert told == [("pause", "ann", "race"), ("resume", "bob", "race")]
    audit = audit_of(racers)
    assert (await audit).clean


async def audit_of(racers: Racers) -> Any:
    return await asyncio.to_thread(audit_when_settled, racers.cluster)


async def test_a_cancellation_that_races_the_end_has_one_outcome(racers: Racers) -> None:
    """Whoever is first in PostgreSQL: it had completed, and the answer says so, or it is marked."""
    key, seen = "races.brief", Counter[str]()
    for _ in rounds(seen, "cancelled", "had ended"):
        one, other = racers.two()
        lasts_s = 0.15
        activation = await one.jobs.trigger(key, lasts_s, "ann")
        assert activation.tick is not None
        found: list[Execution] = []

        async def claimed(tick: datetime = activation.tick, found: list[Execution] = found) -> bool:
            found[:] = await racers.client.executions.list(key, since=tick, until=tick)
            return bool(found)

        await wait_until(claimed, "it isn't claimed", 20)
        await asyncio.sleep(racers.chance.uniform(0, 2 * lasts_s))
        before = await racers.last_action(key)
        told = await outcome(other.executions.cancel(found[0].id, "race", "bob"))
        (run,) = await racers.settled(key, activation.tick)
        actions = [each for each in await racers.actions(key, before) if each.execution_id == run.id]
        if isinstance(told, Conflict):
            assert (run.outcome, run.cancel_requested_at, actions) == ("completed", None, [])
            assert told.info["state"] == "completed"
            seen["had ended"] += 1
        else:
            # Marked in time. It may have returned before it heard of that: then it has completed, and keeps the mark.
            assert run.outcome in {"cancelled", "completed"}
            assert (run.cancel_requested_by, run.cancel_note) == ("bob", "race")
            assert [(each.action, each.actor, each.note) for each in actions] == [("cancel_execution", "bob", "race")]
            seen[run.outcome] += 1


async def test_a_pause_and_a_resume_leave_what_the_later_one_wants(racers: Racers) -> None:
    key, seen = EACH, Counter[str]()
    for _ in rounds(seen, "pause", "resume"):
        one, other = racers.two()
        before = await racers.last_action(key)
        await racers.at_once(one.jobs.pause(key, "race", "ann"), other.jobs.resume(key, "bob", "race"))
        job = await racers.client.jobs.get(key)
        actions = await racers.actions(key, before)
        # A resume that came first found nothing to do, and so is not kept.
        assert [each.action for each in actions] in (["pause"], ["pause", "resume"])
        assert (job.paused is not None) == (actions[-1].action == "pause")
        if job.paused is not None:
            assert (job.paused.by, job.paused.note) == ("ann", "race")
        seen[actions[-1].action] += 1
        await one.jobs.resume(key, "between")
    assert (await audit_of(racers)).clean


async def test_two_changes_of_one_job_both_count_and_of_one_field_the_later(racers: Racers) -> None:
    seen: Counter[str] = Counter()
    spec = JobSpec(schedule="every 1h", labels={"team": "x"})
    job = await racers.client.jobs.create("races", "labelled", "changed", spec, note="to be changed")
    for number in rounds(seen, "ann", "bob"):
        one, other = racers.two()
        before = await racers.last_action(job.key)
        by_ann = JobSpec(labels={"ann": str(number)}, policy={"retries": 2 * number + 1})
        by_bob = JobSpec(labels={"bob": str(number)}, policy={"retries": 2 * number + 2})
        done = await racers.at_once(
            one.jobs.update(job.key, by_ann, ["labels.ann", "policy.retries"], "ann", "first"),
            other.jobs.update(job.key, by_bob, ["labels.bob", "policy.retries"], "bob", "second"),
        )
        assert all(isinstance(each, Job) for each in done), done
        after = await racers.client.jobs.get(job.key)
        assert after.labels == {"team": "x", "ann": str(number), "bob": str(number)}
        actions = await racers.actions(job.key, before)
        assert sorted((each.actor, each.note) for each in actions) == [("ann", "first"), ("bob", "second")]
        last = actions[-1].actor
        assert after.policy["retries"] == 2 * number + (1 if last == "ann" else 2)
        seen[last] += 1


async def test_a_trigger_and_the_jobs_cancellation_have_one_outcome(racers: Racers) -> None:
    """The run was asked for first, and is forgotten or told to stop; or the job was cancelled first, and refuses it."""
    key, seen = "races.idle", Counter[str]()
    for _ in rounds(seen, "refused", "taken"):
        one, other = racers.two()
        before = await racers.last_action(key)
        triggered, cancelled = await racers.at_once(
            one.jobs.trigger(key, by="ann", note="race"), other.jobs.cancel(key, "race", "bob")
        )
        assert isinstance(cancelled, tuple), cancelled
        actions = [each.action for each in await racers.actions(key, before) if each.action != "cancel_execution"]
        if isinstance(triggered, Conflict):
            assert (triggered.info["state"], actions) == ("cancelled", ["cancel"])
            seen["refused"] += 1
        else:
            assert actions == ["trigger", "cancel"]
            assert triggered.tick is not None
            for run in await racers.settled(key, triggered.tick):
                assert run.outcome in {"completed", "cancelled"}
            seen["taken"] += 1
        assert await racers.client.jobs.activations(key) == (), "nothing waits of a cancelled job"
        assert (await racers.client.jobs.get(key)).status == "cancelled"
        await one.jobs.restore(key, "between")


async def test_of_two_who_retry_an_execution_one_attempt_comes(racers: Racers) -> None:
    key = "races.brief"
    for _ in range(ROUNDS):
        one, other = racers.two()
        activation = await one.jobs.trigger(key, 30, "ann")
        assert activation.tick is not None
        found: list[Execution] = []

        async def claimed(tick: datetime = activation.tick, found: list[Execution] = found) -> bool:
            found[:] = await racers.client.executions.list(key, since=tick, until=tick)
            return bool(found)

        await wait_until(claimed, "it isn't claimed", 20)
        await other.executions.cancel(found[0].id, "to be retried", "bob")
        await racers.settled(key, activation.tick)
        retried = await racers.at_once(
            one.executions.retry(found[0].id, "ann", "again"), other.executions.retry(found[0].id, "bob", "again")
        )
        # The second finds the first's, which waits; or, if that has begun by then, is refused.
        ids = {each.id for each in retried if not isinstance(each, Conflict)}
        assert len(ids) == 1, retried

        async def second(tick: datetime = activation.tick) -> bool:
            return len(await racers.client.executions.list(key, since=tick, until=tick)) == 2

        await wait_until(second, "the retry isn't claimed", 20)
        latest = (await racers.client.executions.list(key, since=activation.tick, until=activation.tick))[0]
        assert latest.attempt == 2
        await one.executions.cancel(latest.id, "enough", "ann")
        await racers.settled(key, activation.tick)


async def test_of_two_who_set_a_template_nobody_loses_anything(racers: Racers) -> None:
    seen: Counter[str] = Counter()
    for number in rounds(seen, "ann", "bob"):
        one, other = racers.two()
        name = f"raced{number}"
        await racers.at_once(
            one.templates.set(name, JobSpec(timeout_ms=1_000, policy={"retries": 1}),
                              ["timeout_ms", "policy.retries"], by="ann", note="race"),
            other.templates.set(name, JobSpec(labels={"tier": "x"}, policy={"retries": 2}),
                                ["labels.tier", "policy.retries"], by="bob", note="race"),
        )  # fmt: skip
        template = await racers.client.templates.get(name)
        assert (template.spec.timeout_ms, template.spec.labels, template.revision) == (1_000, {"tier": "x"}, 2)
        assert template.spec.policy == {"retries": 1 if template.changed_by == "ann" else 2}
        actions = await racers.client.jobs.actions(template=name)
        assert actions[0].actor == template.changed_by
        assert {(each.actor, each.note) for each in actions} == {("ann", "race"), ("bob", "race")}
        seen[template.changed_by] += 1


async def test_a_job_that_races_a_change_of_its_template_copies_one_of_the_two(racers: Racers) -> None:
    seen: Counter[str] = Counter()
    await racers.client.templates.set("moving", JobSpec(schedule="every 1h", policy={"retries": 1}, timeout_ms=1_000))
    for number in rounds(seen, "before", "after"):
        one, other = racers.two()
        old, new = (1, 2) if number % 2 == 0 else (2, 1)
        job, _ = await racers.at_once(
            one.jobs.create("races", "labelled", f"moved{number}", JobSpec(), template="moving", note="race"),
            other.templates.set("moving", JobSpec(policy={"retries": new}, timeout_ms=new * 1_000),
                                ["policy.retries", "timeout_ms"]),
        )  # fmt: skip
        assert isinstance(job, Job), job
        assert job.template == "moving"
        assert job.policy["retries"] * 1_000 == job.timeout_ms, "half of one, half of the other"
        seen["before" if job.policy["retries"] == old else "after"] += 1
    assert (await racers.client.templates.get("moving")).jobs == sum(seen.values())


async def test_templates_and_notes_on_the_command_line(racers: Racers) -> None:
    """Through whichever controller the command finds; all of them know it at once."""

    async def cli(*arguments: str) -> Any:
        return await asyncio.to_thread(racers.cluster.cli, *arguments)

    made = await cli(
        "template", "set", "hourly", "--every", "1h", "--retries", "3", "--label", "tier=x", "--note", "new"
    )
    assert (made["revision"], made["spec"]["schedule"]) == (1, "every 1h")
    job = await cli("jobs", "create", "races.labelled", "--name", "cli", "--template", "hourly", "--retries", "",
                    "--note", "as agreed", "--as", "ann")  # fmt: skip
    assert (job["template"], job["labels"], "retries" in job["policy"]) == ("hourly", {"tier": "x"}, False)
    for client in racers.clients:
        assert (await client.templates.get("hourly")).jobs == 1
        assert (await client.jobs.get(job["key"])).template == "hourly"
    await cli("template", "set", "hourly", "--every", "2h")
    assert (await cli("jobs", "show", job["key"]))["schedule"] == "every 1h"
    shown = await cli("template", "show", "hourly")
    assert [(each["action"], each["note"]) for each in shown["actions"]] == [
        ("set_template", ""),
        ("set_template", "new"),
    ]
    assert (await cli("template", "delete", "hourly", "--note", "done with"))["jobs"] == 1
    await cli("jobs", "delete", job["key"], "--note", "tidied up", "--as", "bob")
    told = [(each["action"], each["actor"], each["note"]) for each in await cli("jobs", "actions", job["key"])]
    assert told == [("delete", "bob", "tidied up"), ("create", "ann", "as agreed")]
