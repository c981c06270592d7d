"""A listing that is confined to namespaces has what is in them, and nothing else: in memory and in PostgreSQL."""

import pytest

from cronring.controller.ports.ledger import AuditRequest
from cronring.controller.ports.reads import Namespaces, within
from cronring.controller.ports.templates import TemplateValues
from cronring.schema.module import Module, Verb
from cronring.schema.policy import Policy
from tests.conformance.harness import SECOND, TIMEOUT_MS, World
from tests.conformance.tampering import hands_of

CONFINED = [
    (None, ["default", "a", "b"]),
    (("a",), ["a"]),
    (("a", "default"), ["default", "a"]),
    (("none",), []),
    ((), []),
]
each = pytest.mark.parametrize(("namespaces", "found"), CONFINED)


async def _deploy(world: World, namespace: str, after: str = "") -> None:
    verb = Verb("v", schedule="manual" if after else "every 1h", policy=Policy(after=after))
    await world.store.create_deployment(Module("m", (verb,), namespace), namespace[:1] * 64, 1, TIMEOUT_MS, True)


@each
async def test_templates(world: World, namespaces: Namespaces, found: list[str]) -> None:
    for namespace in ("default", "a", "b"):
        await world.templates.set_template(namespace, "t", TemplateValues(), None, "ann")
    rows = await world.templates.list_templates("", ("", ""), 10, namespaces)
    assert [row.namespace for row in rows] == sorted(found)
    assert await world.templates.count_templates("", namespaces) == len(found)
    assert await world.templates.count_templates("b", namespaces) == found.count("b")
    assert [row.namespace for row in await world.templates.list_templates("b", ("", ""), 10, namespaces)] == [
        namespace for namespace in found if namespace == "b"
    ]


@each
async def test_limits(world: World, namespaces: Namespaces, found: list[str]) -> None:
    for namespace in ("default", "a", "b"):
        await world.limits.set_limit(namespace, "m", 9, "ann")
    rows = await world.limits.list_limits(None, None, namespaces)
    assert [row.namespace for row in rows] == sorted(found)
    assert await world.limits.count_limits(None, namespaces) == len(found)
    assert await world.limits.count_limits("b", namespaces) == found.count("b")


@each
async def test_an_audit(world: World, namespaces: Namespaces, found: list[str]) -> None:
    for namespace in ("default", "a", "b"):
        await _deploy(world, namespace)
    for thorough in (False, True):
        request = AuditRequest(None, None, "", 10 * SECOND, thorough, namespaces)
        assert (await hands_of(world.scene).ledger.audit(request)).audit.jobs == len(found)


@pytest.mark.parametrize(("namespaces", "known"), [(None, True), (("a", "b"), True), (("a",), False)])
async def test_why_knows_of_a_job_that_is_followed(world: World, namespaces: Namespaces, known: bool) -> None:
    await _deploy(world, "b")
    await _deploy(world, "a", after="b/m.v")
    facts = await hands_of(world.scene).ledger.facts("a/m.v", None, namespaces)
    assert (facts.upstream is not None) == known


@pytest.mark.parametrize(
    ("key", "namespaces", "inside"),
    [
        ("m.v", None, True),
        ("m.v", ("default",), True),
        ("m.v", ("a",), False),
        ("a/m.v:name", ("a",), True),
        ("a/m@abc", ("b",), False),
        ("a/m.v", (), False),
    ],
)
def test_a_key_says_its_namespace(key: str, namespaces: Namespaces, inside: bool) -> None:
    assert within(namespaces, key) == inside
