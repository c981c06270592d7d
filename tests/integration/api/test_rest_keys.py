"""Idempotency-Key on real HTTP and PostgreSQL: what is repeated is answered again, and done once."""

import asyncio
from typing import Final
from urllib.parse import quote

import pytest

from cronring.controller.errors import StoreUnavailable
from cronring.controller.store.connect import connect
from cronring.controller.store.request_keys import PostgresRequestKeys
from tests.integration.api.conftest import Scene
from tests.support.rested import Answer, Rested
from tests.support.waiting import wait_until

TRIGGER: Final = f"/jobs/{quote('billing/xm.xc', safe='')}/trigger"


async def trigger(rest: Rested, key: str, note: str = "", by: str = "operator") -> Answer:
    return await rest.ask("POST", TRIGGER, {"note": note}, by=by, headers={"Idempotency-Key": key})


async def triggered(scene: Scene) -> int:
    return sum(each.action == "trigger" for each in await scene.world.scene.actions())


async def test_a_repeated_request_is_answered_as_before(rest: Rested, scene: Scene) -> None:
    first = await trigger(rest, "k1")
    assert (first.status, "Idempotency-Replayed" in first.headers) == (200, False)
    again = await trigger(rest, "k1")
    assert (again.status, again.body, again.headers["Idempotency-Replayed"]) == (200, first.body, "true")
    spaced = await rest.session.post(
        f"/api/v1/cron{TRIGGER}",
        data=b'{ "note" : "" }',
        headers={
            "Authorization": "Bearer test-operator",
            "Content-Type": "application/json",
            "Idempotency-Key": "k1",
        },
    )
    assert spaced.headers["Idempotency-Replayed"] == "true", "the same request, written otherwise"
    other = await trigger(rest, "k1", note="another")
    assert (other.status, other.body["reason"]) == (422, "KEY_REUSED")
    assert (await trigger(rest, "k1", by="root")).body["id"] != first.body["id"], "keys are of who asks"
    assert (await trigger(rest, "k2")).body["id"] != first.body["id"]
    assert await triggered(scene) == 3


async def test_of_many_at_once_one_is_done(rest: Rested, scene: Scene) -> None:
    answers = await asyncio.gather(*(trigger(rest, "k") for _ in range(6)))
    statuses = sorted(each.status for each in answers)
    assert statuses[0] == 200
    assert set(statuses) <= {200, 409}
    assert all(each.headers["Retry-After"] == "1" for each in answers if each.status == 409)
    assert all(each.body["reason"] == "KEY_IN_USE" for each in answers if each.status == 409)
    assert len({each.body["id"] for each in answers if each.status == 200}) == 1
    assert await triggered(scene) == 1


async def test_what_was_refused_may_be_asked_again_by_its_key(rest: Rested, scene: Scene) -> None:
    async def refused() -> bool:
        answer = await rest.ask(
            "POST", TRIGGER, {"payload": "no json"}, by="operator", headers={"Idempotency-Key": "k"}
        )
        return answer.status == 400

    assert await refused()

    async def done() -> bool:
        return (await trigger(rest, "k")).status == 200

    await wait_until(done, "the key is still taken")
    assert await triggered(scene) == 1


async def test_a_key_whose_answer_was_never_recorded_is_undecided_and_never_done_again(
    rest: Rested, scene: Scene, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def dies(*_: object) -> None:
        raise StoreUnavailable("gone, as if the controller had died between the change and the record")

    monkeypatch.setattr(PostgresRequestKeys, "end", dies)
    assert (await trigger(rest, "k")).status == 200
    assert (await trigger(rest, "k")).body["reason"] == "KEY_IN_USE"
    connection = await connect(database_url, "cronring test keys")
    await connection.execute("UPDATE cron_request_keys SET begun_at = begun_at - interval '2 minutes'")
    await connection.close()
    late = await trigger(rest, "k")
    assert (late.status, late.body["reason"]) == (409, "KEY_UNDECIDED")
    assert "look at what is there" in late.body["detail"]
    assert await triggered(scene) == 1


async def test_keys_are_refused_where_they_would_not_count(rest: Rested) -> None:
    for method, path, body in (
        ("GET", "/jobs", None),
        ("POST", "/tokens", {"name": "x"}),
        ("POST", "/webhooks", {"name": "x"}),
    ):
        answer = await rest.ask(method, path, body, headers={"Idempotency-Key": "k"})
        assert (answer.status, answer.body["violations"][0]["field"]) == (400, "Idempotency-Key"), path
    for wrong in ("x" * 256, "a b", "é"):
        answer = await trigger(rest, wrong)
        assert (answer.status, answer.body["violations"][0]["field"]) == (400, "Idempotency-Key"), wrong


async def test_what_a_lease_tells_apart_takes_no_key(rest: Rested) -> None:
    """Its answers would be kept for a day, and a caller's keys be gone after 10,000 messages."""
    for path in ("q/messages:take", *(f"leases/1:{verb}" for verb in ("extend", "finish", "retry", "release"))):
        answer = await rest.session.post(
            f"/api/v1/queues/default/{path}",
            json={},
            headers={"Authorization": "Bearer test-root", "Idempotency-Key": "k"},
        )
        (violation,) = (await answer.json())["violations"]
        assert (answer.status, violation["field"]) == (400, "Idempotency-Key"), path
        assert "its lease says what was done before" in violation["description"]
