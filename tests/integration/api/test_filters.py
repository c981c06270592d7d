"""Filters in words, totals of lists, and what completes them: by gRPC and REST, on real PostgreSQL."""

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from cronring.controller.api.filters import execution_filter, executions_asked, job_filter, jobs_asked
from cronring.controller.api.problems import InvalidRequest
from cronring.controller.ports.reads import ExecutionSort, JobSort
from cronring.controller.store.connect import connect
from cronring.protos.cronring.v1.executions_pb2 import ExecutionFilter
from cronring.protos.cronring.v1.jobs_pb2 import JobFilter
from tests.support.rested import Rested

HOUR: Final = 3_600_000_000
NOW: Final = 1_790_000_000_000_000
NEW: Final = {"namespace": "billing", "module": "xm", "verb": "xa"}


async def now() -> int:
    return NOW


def words(text: str) -> str:
    return f"filter={quote(text)}"


async def keys(rest: Rested, query: str) -> list[str]:
    answer = await rest.ask("GET", f"/jobs?{query}")
    assert answer.status == 200, answer.body
    return [job["key"] for job in answer.body["jobs"]]


async def test_words_and_fields_come_to_the_same(rest: Rested) -> None:
    made = NEW | {"name": "n", "spec": {"schedule": "every 1h", "labels": {"workspace": "ws_3"}}}
    assert (await rest.ask("POST", "/jobs", made)).status == 201
    assert await keys(rest, words("label:workspace=ws_3")) == ["billing/xm.xa:n"]
    assert await keys(rest, words("paused module:xm")) == ["billing/xm.xc"]
    assert await keys(rest, f"{words('paused')}&filter.namespace=billing") == ["billing/xm.xc"]
    assert await keys(rest, f"filter.text={quote('paused module:xm')}") == ["billing/xm.xc"]
    assert (await rest.ask("GET", f"/jobs:count?{words('module:xm')}")).body == {"count": "4"}
    ended, running = (str(each) for each in (await ids(rest, "completed"), await ids(rest, "running")))
    found = await rest.ask("GET", f"/executions?{words('running namespace:billing since:-1h')}")
    assert [each["id"] for each in found.body["executions"]] == [running]
    assert ended != running
    assert await keys(rest, words("XM.XC")) == ["billing/xm.xc"]
    assert await keys(rest, "filter.contains=xm.&filter.contains=ing/&filter.namespace=billing&sort=lateness") != []
    assert await keys(rest, words("contains:xb paused")) == []
    paused = await rest.ask(
        "POST", "/jobs:control", {"filter": {"text": "label:workspace=ws_3"}, "action": "ACTION_PAUSE", "dry_run": True}
    )
    assert paused.status == 200


async def ids(rest: Rested, outcome: str) -> str:
    answer = await rest.ask("GET", f"/executions?{words(f'outcome:{outcome} namespace:billing')}")
    (only,) = answer.body["executions"]
    return str(only["id"])


async def test_pages_of_a_length_of_time_go_on_while_it_moves(rest: Rested) -> None:
    found, token = list[str](), ""
    for _ in range(9):
        page = await rest.ask("GET", f"/executions?page_size=1&page_token={token}&{words('since:1h')}")
        assert page.status == 200, page.body
        found += [each["id"] for each in page.body["executions"]]
        token = page.body["next_page_token"]
        if not token:
            break
    assert len(found) == len(set(found)) == 4
    first = (await rest.ask("GET", f"/executions?page_size=1&{words('since:1h')}")).body["next_page_token"]
    other = await rest.ask("GET", f"/executions?page_size=1&page_token={first}&{words('since:2h')}")
    assert (other.status, "another filter" in other.body["detail"]) == (400, True)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        (f"/jobs?{words('module:xm statuss:paused')}", "character 11: 'statuss': is not known here; did you mean"),
        (f"/jobs?{words('failed')}", "character 1: failed may be outcome:failed or status:failed"),
        (f"/executions?{words('  failed since:soon')}", "character 10: since:soon is no instant"),
        (f"/executions?{words('failed')}&filter.outcomes=lost", "says another outcomes than filter.outcomes"),
        (f"/jobs?{words('module:xm')}&filter.module=other", "says another module than filter.module"),
        (f"/jobs?{words('label:a=1')}&filter.labels.a=2", "says another labels than filter.labels"),
        (f"/jobs?{words('sort:next')}&sort=last", "says sort:next, and sort says last"),
        (f"/jobs:count?{words('sort:next')}", "has sort:, which is of lists"),
        (f"/executions:count?{words('sort:latest')}", "has sort:, which is of lists"),
    ],
)
async def test_what_is_wrong_is_told_with_its_place(rest: Rested, path: str, says: str) -> None:
    answer = await rest.ask("GET", path)
    assert answer.status == 400, answer.body
    ((field, description),) = [(each["field"], each["description"]) for each in answer.body["violations"]]
    assert (field, says in description) == ("filter.text", True), description


async def test_an_empty_text_is_in_every_key_and_so_refused(rest: Rested) -> None:
    order = {"filter": {"contains": [""]}, "action": "ACTION_DELETE"}
    refused = await rest.ask("POST", "/jobs:control", order)
    assert (refused.status, refused.body["violations"][0]["field"]) == (400, "filter.contains")


async def test_a_namespace_in_words_is_as_closed_as_in_a_field(rest: Rested) -> None:
    for path in ("jobs", "jobs:count", "executions", "executions:count"):
        refused = await rest.ask("GET", f"/{path}?{words('namespace:hush')}", by="viewer")
        assert refused.status == 403, path


async def test_totals_are_those_of_all_pages(rest: Rested) -> None:
    page = await rest.ask("GET", "/jobs?page_size=1&total=true&filter.namespace=billing")
    assert (len(page.body["jobs"]), page.body["total"]) == (1, {"count": "3", "at_least": False})
    ranked = await rest.ask("GET", "/jobs?page_size=1&total=true&sort=next")
    assert ranked.body["total"]["count"] == "6"
    seen = await rest.ask("GET", "/jobs?page_size=1&total=true", by="viewer")
    assert seen.body["total"]["count"] == "3", "what one may not view is not counted"
    runs = await rest.ask("GET", "/executions?page_size=1&total=true")
    assert (len(runs.body["executions"]), runs.body["total"]) == (1, {"count": "4", "at_least": False})
    assert "total" not in (await rest.ask("GET", "/jobs?page_size=1")).body


async def suggested(rest: Rested, text: str, by: str = "root", **query: str) -> list[str]:
    asked = "".join(f"&{name}={value}" for name, value in query.items())
    answer = await rest.ask("GET", f"/filters:suggest?text={quote(text)}{asked}", by=by)
    assert answer.status == 200, answer.body
    assert answer.body["at"] == len(text) - len(text.rsplit(" ", 1)[-1])
    return list(answer.body["terms"])


async def test_what_one_types_is_completed_with_what_one_may_see(rest: Rested, database_url: str) -> None:
    connection = await connect(database_url, "cronring test labels")
    await connection.execute("""UPDATE cron_jobs SET labels = '{"team": "a b"}' WHERE key LIKE 'billing/%xa'""")
    await connection.execute("""UPDATE cron_jobs SET labels = '{"team": "hidden"}' WHERE key LIKE 'hush/%'""")
    await connection.close()
    assert await suggested(rest, "mo") == ["module:"]
    assert await suggested(rest, "paused mo") == ["module:"]
    assert await suggested(rest, "status:pa") == ["status:paused"]
    assert await suggested(rest, "since") == []
    assert await suggested(rest, "since", list="executions") == ["since:"]
    assert await suggested(rest, "module:") == ["module:hush_m", "module:xm"]
    assert await suggested(rest, "module:", by="viewer") == ["module:xm"]
    assert await suggested(rest, "namespace:", by="viewer") == ["namespace:billing"]
    assert await suggested(rest, "verb:x", by="viewer") == ["verb:xa", "verb:xb", "verb:xc"]
    assert await suggested(rest, "label:te") == ['label:"team=a b"', "label:team=hidden"]
    assert await suggested(rest, "label:te", by="viewer") == ['label:"team=a b"']
    assert await suggested(rest, "job:", list="executions", by="viewer") == [
        f"job:billing/xm.x{each}" for each in "abc"
    ]
    assert await suggested(rest, "job:billing/xm.xb", list="executions") == ["job:billing/xm.xb"]
    assert await suggested(rest, "job:billing/xm.xb") == [], "jobs are listed by other words"
    long = await rest.ask("GET", f"/filters:suggest?text={'x' * 4_001}")
    assert (long.status, long.body["violations"][0]["field"]) == (400, "text")
    other = await rest.ask("GET", "/filters:suggest?text=a&list=webhooks")
    assert (other.status, other.body["violations"][0]["field"]) == (400, "list")


def test_words_add_to_fields_of_jobs() -> None:
    both = jobs_asked(JobFilter(module="m", labels={"a": "1"}, text="label:b=2 module:m sort:next"), "")
    assert (both.where.module, both.where.labels, both.sort) == ("m", {"a": "1", "b": "2"}, JobSort.NEXT)
    assert job_filter(JobFilter(statuses=["paused"], text="status:paused")).statuses == ("paused",)


async def test_words_add_to_fields_of_executions() -> None:
    stamp = Timestamp(seconds=(NOW - HOUR) // 1_000_000)
    found = await executions_asked(ExecutionFilter(since=stamp, text="since:1h until:now failed"), "latest", now)
    assert (found.where.since, found.where.until, found.sort) == (NOW - HOUR, NOW, ExecutionSort.LATEST)
    apart: Callable[[], Any] = lambda: execution_filter(ExecutionFilter(since=stamp, text="since:2h"), now)  # noqa: E731
    with pytest.raises(InvalidRequest, match="another since"):
        await apart()
