"""Two versions of a module side by side, by REST on real PostgreSQL: what differs, and of what nothing is said."""

from typing import Final

import pytest

from cronring.schema.module import Module, Verb
from tests.conformance.harness import TIMEOUT_MS
from tests.integration.api.conftest import CALLERS, Scene
from tests.support.callers import NamedCallers, judge_of
from tests.support.rested import rested

OLD: Final = (
    Verb("kept", schedule="every 1h"),
    Verb("slower", schedule="0 * * * *"),
    Verb("gone", schedule="0 3 * * *"),
    Verb("told", schedule="every 1h", timeout_ms=1_000),
)
NEW: Final = (
    Verb("kept", schedule="every 1h"),
    Verb("slower", schedule="0 */2 * * *"),
    Verb("fresh", schedule="0 4 * * *"),
    Verb("told", schedule="every 1h", timeout_ms=2_000),
)
DAYS: Final = 2


@pytest.fixture
async def versions(scene: Scene) -> tuple[str, str]:
    """The active one, and one whose place it took."""
    store = scene.world.store
    new = await store.create_deployment(Module("two", NEW, "billing"), "2" * 64, 1, TIMEOUT_MS, True)
    old = await store.create_deployment(Module("two", OLD, "billing"), "1" * 64, 1, TIMEOUT_MS, True)
    return old.key, new.key


def path(key: str, query: str = "") -> str:
    return f"/deployments/{key.replace('/', '%2F')}/compare?days={DAYS}{query}"


async def test_what_a_change_to_another_version_does_to_ticks(scene: Scene, versions: tuple[str, str]) -> None:
    old, new = versions
    async with rested(scene.database, judge_of(NamedCallers(**CALLERS))) as rest:
        answer = await rest.ask("GET", path(new), by="viewer")
        assert answer.status == 200, answer.body
        found = {each["verb"]: each for each in answer.body["verbs"]}
        assert {verb: each["change"] for verb, each in found.items()} == {
            "slower": "changed", "gone": "removed", "fresh": "added", "told": "same",
        }  # fmt: skip
        assert (answer.body["from_key"], answer.body["same"]) == (old, 1)
        assert found["told"]["changed_fields"] == ["timeout_ms"]
        slower = {name: int(found["slower"]["ticks"][name]) for name in ("before", "after", "gone", "new")}
        assert slower == {"before": 24 * DAYS, "after": 12 * DAYS, "gone": 12 * DAYS, "new": 0}
        back = await rest.ask("GET", path(old, f"&from_key={new.replace('/', '%2F')}"), by="viewer")
        assert {each["verb"]: each["change"] for each in back.body["verbs"]} == {
            "slower": "changed", "gone": "added", "fresh": "removed", "told": "same",
        }  # fmt: skip


async def test_only_versions_of_one_module_that_the_caller_sees_are_compared(
    scene: Scene, versions: tuple[str, str]
) -> None:
    old, new = versions
    async with rested(scene.database, judge_of(NamedCallers(**CALLERS))) as rest:
        other = await rest.ask("GET", path(new, f"&from_key={scene.deployment.replace('/', '%2F')}"))
        assert (other.status, "version of another module" in other.body["detail"]) == (400, True)
        hidden = scene.hidden_deployment.replace("/", "%2F")
        assert (await rest.ask("GET", path(new, f"&from_key={hidden}"), by="viewer")).status in {403, 404}
        assert (await rest.ask("GET", path(hidden), by="viewer")).status in {403, 404}
        await scene.world.store.kill_deployment(old, "ann")
        from_nothing = await rest.ask("GET", path(new))
        assert from_nothing.body["from_key"] == ""
        assert {each["change"] for each in from_nothing.body["verbs"]} == {"added"}
