"""What a schedule comes to, what a change would do, what a verb takes, and how the days went: over REST."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import quote

import pytest

from cronring.controller.store.connect import connect
from cronring.schema.policy import FIELDS
from tests.integration.api.conftest import CALLERS, Scene
from tests.support.callers import NamedCallers, judge_of
from tests.support.rested import Answer, Rested, rested

MADE: Final = {
    "namespace": "billing",
    "module": "xm",
    "verb": "xa",
    "name": "n",
    "spec": {"schedule": "30 2 * * *", "policy": {"timezone": "Europe/Berlin"}, "timeout_ms": "60000"},
}
KEY: Final = "billing/xm.xa:n"
JOB: Final = f"/jobs/{quote(KEY, safe='')}"
SPRING: Final = "2027-03-27T12:00:00Z"


@pytest.fixture
async def rest(scene: Scene) -> AsyncIterator[Rested]:
    async with rested(scene.database, judge_of(NamedCallers(**CALLERS))) as found:
        assert (await found.ask("POST", "/jobs", MADE)).status == 201
        yield found


async def preview(rest: Rested, spec: dict[str, Any], mask: str, **more: Any) -> Answer:
    return await rest.ask("POST", f"{JOB}/preview", {"spec": spec, "update_mask": mask, **more})


def refused(answer: Answer) -> dict[str, str]:
    assert answer.status == 400, answer.body
    return {each["field"]: each["description"] for each in answer.body["violations"]}


async def test_a_text_is_explained_as_it_is_typed(rest: Rested) -> None:
    asked = f"/schedules:explain?schedule=30%202%20*%20*%20*&policy.timezone=Europe/Berlin&from_at={SPRING}&count=3"
    said = (await rest.ask("GET", f"{asked}&year=2027", by="viewer")).body
    assert said["timezone"] == "Europe/Berlin"
    assert [tick["local"][:19] for tick in said["ticks"]] == [
        "2027-03-28T03:00:00",
        "2027-03-29T02:30:00",
        "2027-03-30T02:30:00",
    ]
    assert said["ticks"][0]["note"]
    assert not said["ticks"][1]["note"]
    assert (said["year"], len(said["days"]), sum(said["days"])) == (2027, 365, 365)
    assert [each["day"] for each in said["clock_changes"]] == ["2027-03-28", "2027-10-31"]
    assert said["remarks"], "lint says what the clocks do to 02:30"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("schedule=61%202%20*%20*%20*", "schedule"),
        ("schedule=0%202%20*%20*%20*&policy.timezone=Europe/Nowhere", "policy.timezone"),
        ("schedule=every%201h&year=1970", "year"),
        ("schedule=every%201h&year=2099", "year"),
        ("schedule=every%201h&count=101", "count"),
        ("schedule=every%201h&count=0", "count"),
    ],
)
async def test_what_cannot_be_explained_names_its_field(rest: Rested, query: str, field: str) -> None:
    assert field in refused(await rest.ask("GET", f"/schedules:explain?{query}"))


async def test_a_job_is_explained_with_its_jitter(rest: Rested) -> None:
    jitter = {"spec": {"policy": {"jitter": "10m"}}, "update_mask": "policy.jitter"}
    assert (await rest.ask("PATCH", JOB, jitter)).status == 200
    said = (await rest.ask("GET", f"{JOB}/schedule?from_at={SPRING}&count=2")).body
    assert len(said["ticks"]) == 2
    assert all(tick["run_at"] >= tick["tick"] for tick in said["ticks"])
    assert any(tick["run_at"] != tick["tick"] for tick in said["ticks"])


async def test_remarks_count_the_retries_that_the_cluster_gives(rest: Rested) -> None:
    often = {"spec": {"schedule": "* * * * *", "policy": {"backoff": "2m"}}, "update_mask": "schedule,policy.backoff"}
    assert (await rest.ask("PATCH", JOB, often)).status == 200
    new = {**MADE, "name": "m", "spec": {"schedule": "* * * * *", "policy": {"backoff": "2m"}}}

    async def remarks() -> list[str]:
        """Of the job, and of previews of it and of a new one: they are the same."""
        asked = {"spec": often["spec"], "update_mask": often["update_mask"]}
        of_job = (await rest.ask("GET", f"{JOB}/schedule")).body["remarks"]
        changed = (await rest.ask("POST", f"{JOB}/preview", asked)).body["explanation"]["remarks"]
        created = (await rest.ask("POST", "/jobs:preview", {"create": new})).body["explanation"]["remarks"]
        found = [[each["message"] for each in those if each["rule"] == "retries"]
                 for those in (of_job, changed, created)]  # fmt: skip
        assert found[1:] == found[:1] * 2
        return found[0]

    (unsaid,) = await remarks()
    assert "by a default of the cluster only" in unsaid
    assert (await rest.ask("PATCH", "/defaults", {"retries": 2})).status == 200
    (never,) = await remarks()
    assert "the first retry (by the cluster's default) comes 2m after a failure" in never
    assert "it never comes" in never
    refusing = {"spec": {"policy": {"retries": 0}}, "update_mask": "policy.retries"}
    assert (await rest.ask("PATCH", JOB, refusing)).status == 200
    said = (await rest.ask("GET", f"{JOB}/schedule")).body["remarks"]
    assert not [each for each in said if each["rule"] == "retries"], "the job refuses them"


async def test_a_preview_says_what_changes_and_changes_nothing(rest: Rested) -> None:
    before = await rest.ask("GET", JOB)
    said = (await preview(rest, {"schedule": "0 4 * * *", "labels": {"a": "b"}}, "schedule,labels", hours=48)).body
    fields = {each["field"]: (each["old"], each["new"]) for each in said["fields"]}
    assert fields["schedule"] == ("30 2 * * *", "0 4 * * *")
    assert "labels.a" in fields
    assert said["ticks"]["before"] == said["ticks"]["after"] == "2"
    # 90 minutes later, or to today from tomorrow: between half past two and four.
    first_old, first_new = (
        datetime.fromisoformat(each) for each in (before.body["next_tick"], said["explanation"]["ticks"][0]["tick"])
    )
    shift_ms = (first_new - first_old) // timedelta(milliseconds=1)
    assert (said["ticks"]["gone"], said["ticks"]["shift_ms"]) == ("2", str(shift_ms))
    assert (first_new - first_old) % timedelta(hours=1) == timedelta(minutes=30)
    assert said["explanation"]["schedule"] == "0 4 * * *"
    assert said["etag"] == before.body["etag"]
    after = await rest.ask("GET", JOB)
    assert after.headers["ETag"] == before.headers["ETag"]
    assert after.body["schedule"] == "30 2 * * *"
    log = (await rest.ask("GET", f"/actions?job={quote(KEY)}")).body["actions"]
    assert {each["action"] for each in log} == {"create"}


async def test_a_preview_refuses_what_a_change_would(rest: Rested) -> None:
    for spec, mask in (
        ({"schedule": "61 * * * *"}, "schedule"),
        ({"policy": {"overlap": "sometimes"}}, "policy.overlap"),
        ({"payload": "1"}, "payload"),
        ({"timeout_ms": "-1"}, "timeout_ms"),
    ):
        previewed = await preview(rest, spec, mask)
        assert f"spec.{mask}" in refused(previewed)
        done = await rest.ask("PATCH", JOB, {"spec": spec, "update_mask": mask})
        assert refused(done) == refused(previewed)
    assert refused(await preview(rest, {"schedule": "every 1h"}, "schedule", hours=8_785)).keys() == {"hours"}


NEW: Final = {"namespace": "billing", "module": "xm", "verb": "xa", "name": "new"}


async def test_a_job_that_would_be_made_is_previewed(rest: Rested) -> None:
    spec = {"schedule": "30 2 * * *", "policy": {"timezone": "Europe/Berlin"}}
    said = (await rest.ask("POST", "/jobs:preview", {"create": {**NEW, "spec": spec}, "hours": 48})).body
    assert (said["explanation"]["schedule"], said["explanation"]["timezone"]) == ("30 2 * * *", "Europe/Berlin")
    assert (said["ticks"]["before"], said["ticks"]["after"], said["etag"], said["fields"]) == ("0", "2", "", [])
    assert len(said["explanation"]["ticks"]) == 10
    assert (await rest.ask("GET", f"/jobs/{quote('billing/xm.xa:new', safe='')}")).status == 404
    of_queue = {"queue": {"queue": "reports", "workspace": "ws_3"}, "spec": {"schedule": "every 5m"}}
    assert (await rest.ask("POST", "/jobs:preview", {"create": of_queue})).body["explanation"]["kind"] == "interval"
    at_now = {**NEW, "spec": {"schedule": "at now"}}
    assert (await rest.ask("POST", "/jobs:preview", {"create": at_now})).body["explanation"]["kind"] == "once"


@pytest.mark.parametrize(
    "item",
    [
        NEW,
        {**NEW, "spec": {"schedule": "61 * * * *"}},
        {**NEW, "name": "", "spec": {"schedule": "every 1h"}},
        {**NEW, "module": "", "spec": {"schedule": "every 1h"}},
        {**NEW, "spec": {"schedule": "every 1h", "payload": "1"}},
        {**NEW, "spec": {"schedule": "every 1h", "policy": {"after": "billing/xm.xa"}}},
    ],
)
async def test_a_preview_refuses_what_making_it_would(rest: Rested, item: dict[str, Any]) -> None:
    previewed = await rest.ask("POST", "/jobs:preview", {"create": item})
    assert refused(previewed) == refused(await rest.ask("POST", "/jobs", item))


async def test_a_preview_of_a_job_that_is_there_as_another_is_refused(rest: Rested) -> None:
    """And one of its own values is as good as made."""
    other = {**MADE, "spec": {"schedule": "every 1h"}}
    assert (await rest.ask("POST", "/jobs:preview", {"create": other})).status == 409
    assert (await rest.ask("POST", "/jobs:preview", {"create": MADE})).status == 200
    both = await rest.ask("POST", f"{JOB}/preview", {"create": MADE})
    assert refused(both).keys() == {"create"}
    unknown = await rest.ask(
        "POST", "/jobs:preview", {"create": {**NEW, "verb": "xz", "spec": {"schedule": "every 1h"}}}
    )
    assert unknown.status == 404
    assert (await rest.ask("POST", "/jobs:preview", {"create": NEW}, by="viewer")).status == 403


async def test_a_verb_is_described_before_it_has_a_job(rest: Rested) -> None:
    verb = (await rest.ask("GET", "/verbs/billing/xm/xa", by="viewer")).body
    assert (verb["verb"], verb["request"]) == ("xa", "Unit")
    version = (await rest.ask("GET", f"/deployments/{quote(verb['deployment'], safe='')}", by="viewer")).body
    assert "xa" in version["verbs"]
    assert (await rest.ask("GET", "/verbs/billing/xm/xz", by="viewer")).status == 404
    assert (await rest.ask("GET", "/verbs/other/xm/xa", by="viewer")).status in {403, 404}


async def test_what_its_module_declares_is_changed_there(rest: Rested) -> None:
    path = f"/jobs/{quote('billing/xm.xa', safe='')}/preview"
    answer = await rest.ask("POST", path, {"spec": {"schedule": "every 2h"}, "update_mask": "schedule"})
    assert answer.status == 409, answer.body


async def test_what_a_verb_takes_and_a_policy_may_have(rest: Rested) -> None:
    verb = (await rest.ask("GET", f"{JOB}/verb", by="viewer")).body
    assert (verb["verb"], verb["request"], verb["types"]) == ("xa", "Unit", [])
    assert verb["deployment"].startswith("billing/xm@")
    policies = (await rest.ask("GET", "/policies", by="viewer")).body["policies"]
    assert [each["name"] for each in policies] == [each.name for each in FIELDS]
    assert all(each["help"] for each in policies)


RUNS: Final = """
INSERT INTO cron_executions (job_id, deployment_id, number, tick, run_at, claimed_at, started_at, ended_at, outcome,
                             controller_id, runner_id, hard_deadline)
SELECT id, deployment_id, 1000 + n, t.at, t.at, t.at + n * interval '1 second', t.at + n * interval '1 second',
       t.at + n * interval '3 seconds', CASE n WHEN 1 THEN 'failed' ELSE 'completed' END, 'c1', 'r1', now()
FROM cron_jobs,
     (SELECT n, date_trunc('day', now(), 'Europe/Berlin') - interval '12 hours' + n * interval '1 minute' AS at
      FROM generate_series(1, 4) n) t
WHERE key = $1
"""


async def test_days_are_those_of_the_zone_with_their_spreads(rest: Rested, database_url: str) -> None:
    connection = await connect(database_url, "cronring test scene")
    await connection.execute(RUNS, KEY)
    await connection.close()
    said = (await rest.ask("GET", f"{JOB}/days?days=3", by="viewer")).body
    assert said["timezone"] == "Europe/Berlin"
    assert [day["runs"] for day in said["days"]] == [0, 4, 0]
    yesterday = said["days"][1]
    assert yesterday["completed"] == 3
    assert yesterday["duration"] == {"p50_ms": 4_000, "p99_ms": 8_000, "most_ms": 8_000}
    assert yesterday["lateness"] == {"p50_ms": 2_000, "p99_ms": 4_000, "most_ms": 4_000}
    assert "duration" not in said["days"][0]
    assert said["days"][0]["until_at"] == yesterday["from_at"]
    assert "days" in refused(await rest.ask("GET", f"{JOB}/days?days=63"))
    assert "timezone" in refused(await rest.ask("GET", f"{JOB}/days?timezone=Nowhere"))
