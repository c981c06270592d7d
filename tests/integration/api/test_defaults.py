"""The cluster's defaults through the API: what is refused, and where a job says that it has its values from."""

from typing import Any, Final

import pytest

from tests.support.rested import Rested

PATH: Final = "/defaults"
MADE: Final = {"namespace": "billing", "module": "xm", "verb": "xa", "name": "n", "spec": {"schedule": "every 1h"}}
JOB: Final = "/jobs/billing%2Fxm.xa:n"


async def put(rest: Rested, **values: Any) -> dict[str, Any]:
    answer = await rest.ask("PATCH", PATH, values)
    assert answer.status == 200, answer.body
    return dict(answer.body)


async def of_job(rest: Rested) -> tuple[str, str, str, str]:
    body = (await rest.ask("GET", JOB)).body
    own = body.get("policy", {}).get("late_after", "")
    return body["timeout_ms"], body["timeout_from"], body["default_late_after"], own


async def test_a_job_says_where_it_has_its_values_from(rest: Rested) -> None:
    made = await rest.ask("POST", "/jobs", MADE)
    assert made.status == 201
    tag = made.headers["ETag"]
    assert await of_job(rest) == ("300000", "built_in", "", "")
    body = await put(rest, timeout_ms=600_000, late_after="1m30s", note="slow", requested_by="ada")
    assert (body["timeout_ms"], body["late_after"], body["revision"], body["note"]) == ("600000", "1m30s", "1", "slow")
    assert body["changed_at"]
    assert await of_job(rest) == ("600000", "cluster", "1m30s", "")
    assert (await rest.ask("GET", JOB)).headers["ETag"] == tag, "the job is as it was"
    jobs = (await rest.ask("GET", "/jobs?filter.namespace=billing")).body["jobs"]
    (listed,) = [job for job in jobs if job["key"].endswith(":n")]
    assert (listed["timeout_ms"], listed["timeout_from"]) == ("600000", "cluster")
    own = {"spec": {"timeout_ms": 7_000, "policy": {"late_after": "5s"}}, "update_mask": "timeout_ms,policy.late_after"}
    assert (await rest.ask("PATCH", JOB, own)).status == 200
    assert await of_job(rest) == ("7000", "", "", "5s")
    unsaid = {"spec": {}, "update_mask": "timeout_ms,policy.late_after"}
    assert (await rest.ask("PATCH", JOB, unsaid)).status == 200
    assert await of_job(rest) == ("600000", "cluster", "1m30s", "")
    assert "timeout_ms" not in await put(rest, timeout_ms=0)
    assert await of_job(rest) == ("300000", "built_in", "1m30s", "")
    await put(rest, late_after="")
    assert await of_job(rest) == ("300000", "built_in", "", "")


async def test_retries_are_told_unless_the_job_says_them(rest: Rested) -> None:
    await rest.ask("POST", "/jobs", MADE)

    async def retries() -> tuple[int, int | None]:
        body = (await rest.ask("GET", JOB)).body
        return body["default_retries"], (body.get("policy") or {}).get("retries")

    async def say(policy: dict[str, int]) -> None:
        answer = await rest.ask("PATCH", JOB, {"spec": {"policy": policy}, "update_mask": "policy.retries"})
        assert answer.status == 200, answer.body

    assert (await rest.ask("GET", PATH)).body["retries"] == 0
    assert await retries() == (0, None)
    assert (await put(rest, retries=3))["retries"] == 3
    assert await retries() == (3, None)
    await say({"retries": 0})
    assert await retries() == (0, 0)
    await say({})
    assert await retries() == (3, None)
    assert (await put(rest, late_after="30s"))["retries"] == 3, "what isn't given stays"
    assert (await put(rest, retries=0))["retries"] == 0
    assert await retries() == (0, None)


async def test_what_is_exported_and_applied_says_no_default(rest: Rested) -> None:
    await rest.ask("POST", "/jobs", MADE)
    await put(rest, timeout_ms=600_000)
    exported = str((await rest.ask("GET", "/jobs:export?filter.namespace=billing")).body)
    assert ("every 1h" in exported, "timeout_ms" in exported) == (True, False)
    item = {key: value for key, value in MADE.items() if key != "namespace"}
    path = "/sets/billing/prod/apply"
    adopted = (await rest.ask("POST", path, {"jobs": [item], "adopt": True})).body
    assert (adopted["adopted"], adopted["changed"]) == (1, 0)
    await put(rest, timeout_ms=0)
    again = (await rest.ask("POST", path, {"jobs": [item]})).body
    assert (again["unchanged"], again["changed"]) == (1, 0), "a default is no change of a file's jobs"
    said = {**item, "spec": {"schedule": "every 1h", "timeout_ms": 7_000}}
    changed = (await rest.ask("POST", path, {"jobs": [said], "dry_run": True})).body
    assert [each["fields"] for each in changed["jobs"]] == [[{"field": "timeout_ms", "old": "", "new": "7s"}]]


async def test_what_is_remarked_of_a_job_goes_by_it(rest: Rested) -> None:
    await rest.ask("POST", "/jobs", MADE)

    async def remarks() -> list[str]:
        body = (await rest.ask("GET", f"{JOB}/schedule")).body
        return [each["message"] for each in body["remarks"] if "(timeout)" in each["message"]]

    assert await remarks() == []
    await put(rest, timeout_ms=7_200_000)
    assert [message.split(",")[0] for message in await remarks()] == ["a run may take 2h (timeout)"]


@pytest.mark.parametrize(
    ("values", "field", "words"),
    [
        ({}, "", "timeout_ms, late_after, retries"),
        ({"note": "x"}, "", "sets nothing"),
        ({"timeout_ms": -1}, "timeout_ms", "-1"),
        ({"timeout_ms": 10**18}, "timeout_ms", "must be from 1"),
        ({"late_after": "500ms"}, "late_after", "1s"),
        ({"late_after": "soon"}, "late_after", ""),
        ({"retries": 101}, "retries", "100"),
        ({"retries": -1}, "retries", "0"),
        ({"backoff": "5s"}, "backoff", ""),
    ],
)
async def test_what_can_be_no_default_is_refused_and_changes_nothing(
    rest: Rested, values: dict[str, Any], field: str, words: str
) -> None:
    before = (await rest.ask("GET", PATH)).body
    answer = await rest.ask("PATCH", PATH, values)
    assert answer.status == 400
    (violation,) = answer.body["violations"]
    assert violation["field"] == field
    assert words in str(violation)
    assert (await rest.ask("GET", PATH)).body == before
