"""ETag and If-Match on real PostgreSQL: of two who change what they have both seen, exactly one does."""

import asyncio
from typing import Any, Final
from urllib.parse import quote

from cronring.schema.module import Module, Verb
from tests.integration.api.conftest import Scene
from tests.support.rested import Answer, Rested

MADE: Final = {"namespace": "billing", "module": "xm", "verb": "xa", "name": "n", "spec": {"schedule": "every 1h"}}
JOB: Final = f"/jobs/{quote('billing/xm.xa:n', safe='')}"
TEMPLATE: Final = "/templates/billing/nightly"
ROUNDS: Final = 10


def timeout(value: int) -> dict[str, Any]:
    return {"spec": {"timeout_ms": value}, "update_mask": "timeout_ms"}


async def change(rest: Rested, tag: str, value: int, method: str = "PATCH") -> Answer:
    body = timeout(value) if method == "PATCH" else None
    return await rest.ask(method, JOB, body, headers={"If-Match": tag})


async def test_a_job_is_changed_as_it_was_seen_or_not_at_all(rest: Rested) -> None:
    made = await rest.ask("POST", "/jobs", MADE)
    first = made.headers["ETag"]
    assert first == f'"{made.body["etag"]}"'
    seen = await rest.ask("GET", JOB)
    assert seen.headers["ETag"] == first
    changed = await change(rest, first, 7_000)
    assert (changed.status, changed.headers["ETag"] == first) == (200, False)
    late = await change(rest, first, 8_000)
    assert (late.status, late.body["reason"], late.body["code"]) == (412, "ETAG_MISMATCH", "ABORTED")
    assert (await rest.ask("GET", JOB)).body["timeout_ms"] == "7000"
    second = changed.headers["ETag"]
    assert (await rest.ask("POST", f"{JOB}/pause", {})).status == 200
    assert (await rest.ask("GET", JOB)).headers["ETag"] == second, "what happens to a job is no other definition"
    assert (await change(rest, f'W/{second}, "other"', 9_000)).status == 412, "a weak one is no match"
    assert (await change(rest, f'"other", {second}', 9_000)).status == 200
    assert (await change(rest, "*", 10_000)).status == 200
    assert (await change(rest, first, 0, "DELETE")).status == 412
    assert (await change(rest, (await rest.ask("GET", JOB)).headers["ETag"], 0, "DELETE")).status == 204
    assert (await change(rest, "*", 1)).status == 404
    again = await rest.ask("POST", "/jobs", MADE)
    assert again.headers["ETag"] != first, "another job of the same key is another one"


async def test_if_match_is_refused_where_it_would_not_count(rest: Rested) -> None:
    for method, path in (("POST", f"{JOB}/pause"), ("GET", "/jobs"), ("POST", "/webhooks")):
        answer = await rest.ask(method, path, {} if method != "GET" else None, headers={"If-Match": '"x"'})
        assert (answer.status, answer.body["violations"][0]["field"]) == (400, "If-Match"), path
    for wrong in ("x", '"x', "W/x", '"é"', "*, *"):
        answer = await change(rest, wrong, 1)
        assert (answer.status, answer.body["violations"][0]["field"]) == (400, "If-Match"), wrong


async def test_of_two_who_change_a_job_one_is_too_late(rest: Rested) -> None:
    tag = (await rest.ask("POST", "/jobs", MADE)).headers["ETag"]
    for number in range(ROUNDS):
        answers = await asyncio.gather(*(change(rest, tag, 1_000 + 10 * number + each) for each in range(4)))
        assert sorted(each.status for each in answers) == [200, 412, 412, 412]
        won = next(each for each in answers if each.status == 200)
        now = await rest.ask("GET", JOB)
        assert now.body["timeout_ms"] == won.body["timeout_ms"]
        tag = now.headers["ETag"]
    both = await asyncio.gather(change(rest, tag, 1), change(rest, tag, 1, "DELETE"))
    assert [each.status for each in both] in ([200, 412], [404, 204], [412, 204])


async def test_of_two_who_set_a_template_one_is_too_late(rest: Rested) -> None:
    made = await rest.ask("PUT", TEMPLATE, {"description": "0"}, headers={"If-Match": "*"})
    assert made.status == 412, "there was none"
    tag = (await rest.ask("PUT", TEMPLATE, {"description": "0"})).headers["ETag"]
    for number in range(ROUNDS):
        asked = [
            rest.ask("PUT", TEMPLATE, {"description": f"{number} {each}"}, headers={"If-Match": tag})
            for each in range(4)
        ]
        answers = await asyncio.gather(*asked)
        assert sorted(each.status for each in answers) == [200, 412, 412, 412]
        tag = (await rest.ask("GET", TEMPLATE)).headers["ETag"]
    gone = await asyncio.gather(*(rest.ask("DELETE", TEMPLATE, headers={"If-Match": tag}) for _ in range(3)))
    assert sorted(each.status for each in gone) == [200, 404, 404]


async def test_of_two_who_set_a_limit_one_is_too_late(rest: Rested) -> None:
    path = "/limits/billing/xm"
    limits = await rest.ask("GET", "/limits?namespace=billing")
    tag = f'"{limits.body["limits"][0]["etag"]}"'
    for number in range(ROUNDS):
        asked = [
            rest.ask("PUT", path, {"max_concurrent": 10 + 4 * number + each}, headers={"If-Match": tag})
            for each in range(4)
        ]
        answers = await asyncio.gather(*asked)
        assert sorted(each.status for each in answers) == [200, 412, 412, 412]
        won = next(each for each in answers if each.status == 200)
        assert won.headers["ETag"] != tag
        tag = won.headers["ETag"]
    gone = await asyncio.gather(*(rest.ask("DELETE", path, headers={"If-Match": tag}) for _ in range(3)))
    assert sorted(each.status for each in gone) == [200, 404, 404]
    late = await rest.ask("PUT", path, {"max_concurrent": 5}, headers={"If-Match": tag})
    assert (late.status, late.body["reason"]) == (412, "ETAG_MISMATCH"), "it is gone"
    assert (await rest.ask("PUT", path, {"max_concurrent": 5}, headers={"If-Match": "*"})).status == 412


async def test_of_two_who_set_the_defaults_one_is_too_late(rest: Rested) -> None:
    tag = (await rest.ask("GET", "/defaults")).headers["ETag"]
    for number in range(ROUNDS):
        asked = [
            rest.ask("PATCH", "/defaults", {"timeout_ms": 1_000 + 4 * number + each}, headers={"If-Match": tag})
            for each in range(4)
        ]
        answers = await asyncio.gather(*asked)
        assert sorted(each.status for each in answers) == [200, 412, 412, 412]
        won = next(each for each in answers if each.status == 200)
        assert (await rest.ask("GET", "/defaults")).body["timeout_ms"] == won.body["timeout_ms"]
        tag = won.headers["ETag"]
    same = await rest.ask("PATCH", "/defaults", {"timeout_ms": won.body["timeout_ms"]}, headers={"If-Match": tag})
    assert (same.status, same.headers["ETag"]) == (200, tag), "nothing new is no change"


async def test_of_two_who_turn_a_webhook_one_is_too_late(rest: Rested) -> None:
    path = "/webhooks/xw"
    tag = (await rest.ask("GET", path)).headers["ETag"]
    for number in range(ROUNDS):
        asked = [
            rest.ask(
                "PUT", f"{path}/enabled", {"enabled": bool(number % 2), "reason": f"{number} {each}"},
                headers={"If-Match": tag},
            )
            for each in range(4)
        ]  # fmt: skip
        answers = await asyncio.gather(*asked)
        # To enable what is enabled changes nothing, whoever was first: it is what they have seen.
        assert sorted(each.status for each in answers) == [200, 412, 412, 412]
        tag = (await rest.ask("GET", path)).headers["ETag"]
    stale = await rest.ask("DELETE", path, headers={"If-Match": '"AAAA"'})
    assert (stale.status, stale.body["reason"]) == (412, "ETAG_MISMATCH")
    gone = await asyncio.gather(*(rest.ask("DELETE", path, headers={"If-Match": tag}) for _ in range(3)))
    assert sorted(each.status for each in gone) == [204, 404, 404]


async def test_who_rolls_back_decides_by_what_was_active(rest: Rested, scene: Scene) -> None:
    """Two operators have seen the first version active. One activates the second, the other the third."""
    keys = [scene.deployment]
    for digest in ("c", "d"):
        module = Module("xm", (Verb("xa", schedule=f"every {ord(digest)}m"),), "billing")
        deployed = await scene.world.store.create_deployment(module, digest * 64, 1, 1_000, True, by="x")
        keys.append(deployed.key)
    first, second, third = (f"/deployments/{quote(key, safe='')}" for key in keys)
    await rest.ask("POST", f"{first}/activate", {})
    tags = {each: (await rest.ask("GET", each)).headers["ETag"] for each in (first, second, third)}
    answers = await asyncio.gather(
        *(rest.ask("POST", f"{each}/activate", {}, headers={"If-Match": tags[each]}) for each in (second, third))
    )
    assert sorted(each.status for each in answers) == [200, 412]
    late = await rest.ask("POST", f"{first}/kill", {}, headers={"If-Match": tags[first]})
    assert (late.status, late.body["reason"]) == (412, "ETAG_MISMATCH")
    won = second if answers[0].status == 200 else third
    now = (await rest.ask("GET", won)).headers["ETag"]
    activated = answers[0] if won == second else answers[1]
    assert f'"{activated.body["deployment"]["etag"]}"' == now
    rehearsed = await rest.ask("POST", f"{won}/kill", {"dry_run": True}, headers={"If-Match": now})
    assert rehearsed.status == 200
    both = await asyncio.gather(*(rest.ask("POST", f"{won}/kill", {}, headers={"If-Match": now}) for _ in range(2)))
    assert sorted(each.status for each in both) == [200, 412]


async def test_an_etag_tells_nothing_of_a_payload(rest: Rested) -> None:
    made = await rest.ask("POST", "/jobs", MADE)
    seen = await rest.ask("GET", JOB, by="viewer")
    assert seen.body["outputs_hidden"]
    assert seen.headers["ETag"] == made.headers["ETag"], "who sees less may still hold to what they saw"
