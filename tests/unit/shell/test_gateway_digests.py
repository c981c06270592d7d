"""A digest names one schema, whoever says Hello with it."""

from tests.support.fake_runner import hello
from tests.unit.shell.test_gateway import World, world

__all__ = ["world"]  # the fixture


async def test_a_known_digest_with_another_schema_is_refused(world: World) -> None:
    (module,) = (await (await world.connect(hello())).hear()).welcome.modules
    assert module.active
    liar = hello()
    liar.runner_id = "liar"
    liar.modules[0].schema.verbs.add(name="mine", schedule="* * * * *")
    (refused,) = (await (await world.connect(liar)).hear()).welcome.modules
    assert f"is that of {module.deployment} already, with another schema" in refused.problem
    assert (refused.deployment, refused.active, world.refused) == ("", False, ["module"])
