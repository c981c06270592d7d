"""A change that is checked under its lock: what the check is told, and that nothing is changed where it refuses."""

from typing import NoReturn

import pytest

from cronring.controller.errors import NotAsSeen
from cronring.controller.ports.limits import LimitRow
from cronring.controller.ports.store import ActiveVersion
from cronring.schema.module import Module, Verb
from tests.conformance.harness import TIMEOUT_MS, World


def refuse(_: object) -> NoReturn:
    raise NotAsSeen("it is another one by now")


async def test_a_limit_that_is_not_as_seen_stays(world: World) -> None:
    told: list[LimitRow | None] = []
    limits = world.limits
    first = await limits.set_limit("default", "billing", 3, "ann", check=told.append)
    assert told == [None]
    with pytest.raises(NotAsSeen):
        await limits.set_limit("default", "billing", 5, "bob", check=refuse)
    with pytest.raises(NotAsSeen):
        await limits.remove_limit("default", "billing", "bob", check=refuse)
    assert await limits.list_limits() == [first]
    assert [each.subject for each in await world.scene.changes()] == ["limit default/billing"]
    await limits.set_limit("default", "billing", 5, "bob", check=told.append)
    await limits.remove_limit("default", "billing", "bob", check=told.append)
    assert [each and each.max_concurrent for each in told] == [None, 3, 5]


async def test_what_is_active_stays_where_another_version_was_expected(world: World) -> None:
    told: list[ActiveVersion] = []
    second, first = [
        await world.store.create_deployment(
            Module("billing", (Verb("close", schedule=schedule),)), digest * 64, replicas, TIMEOUT_MS, True
        )
        for digest, schedule, replicas in (("b", "every 2h", 1), ("a", "every 1h", 2))
    ]
    for dry_run in (False, True):
        with pytest.raises(NotAsSeen):
            await world.store.activate_deployment(second.key, 1, TIMEOUT_MS, dry_run=dry_run, check=refuse)
        with pytest.raises(NotAsSeen):
            await world.store.kill_deployment(first.key, dry_run=dry_run, check=refuse)
    assert await world.store.find_active([first.key, second.key]) == {first.key}
    await world.store.activate_deployment(second.key, 1, TIMEOUT_MS, check=told.append)
    await world.store.kill_deployment(second.key, check=told.append)
    await world.store.kill_deployment(second.key, check=told.append)
    assert told == [
        ActiveVersion(first.key, "a" * 64, 2), ActiveVersion(second.key, "b" * 64, 1), ActiveVersion(),
    ]  # fmt: skip
