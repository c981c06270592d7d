from dataclasses import replace

from hypothesis import given

from cronring.schema.diff import FieldChange, VerbChange, diff_modules
from cronring.schema.module import DataField, DataType, Module, Verb
from cronring.schema.policy import Policy
from tests.unit.schema.strategies import MODULES

OLD = Module(
    "billing",
    (
        Verb("close", schedule="0 6 1 * *", line=3),
        Verb("refresh", schedule="every 30m", timeout_ms=60_000),
        Verb("gone", schedule="5m", doc="Old."),
        Verb("same", "Order", line=9),
    ),
)
NEW = Module(
    "billing",
    (
        Verb("same", "Order", line=1),
        Verb("added", schedule="every 1h", on_disconnect="finish"),
        Verb("refresh", schedule="every 1h", is_async=True),
        Verb("close", schedule="0 6 1 * *", doc="Now documented."),
    ),
    doc="Money.",
)


def test_what_changed():
    difference = diff_modules(OLD, NEW)
    assert difference
    assert [verb.name for verb in difference.added] == ["added"]
    assert [verb.name for verb in difference.removed] == ["gone"]
    assert difference.changed == (
        VerbChange(
            "refresh",
            (
                FieldChange("schedule", "every 30m", "every 1h"),
                FieldChange("timeout_ms", "1m", ""),
                FieldChange("is_async", "sync", "async"),
            ),
        ),
        VerbChange("close", (FieldChange("doc", "", "Now documented."),)),
    )
    assert list(difference.lines()) == [
        "~ module: doc changed",
        '- verb gone(Unit) Unit +cron "5m"',
        '+ verb added(Unit) Unit +every "1h" +on_disconnect finish',
        "~ verb refresh: schedule every 30m -> every 1h",
        "~ verb refresh: timeout 1m -> nothing",
        "~ verb refresh: async sync -> async",
        "~ verb close: doc changed",
    ]


def test_policies_and_records():
    order = DataType("Order", (DataField("id", "int"), DataField("note", "str | None", True, "null")))
    old = Module("m", (Verb("a", schedule="5m", policy=Policy(retries=3, retry_on=("A", "b.C"))),), types=(order,))
    new = Module(
        "m",
        (Verb("a", "Order", schedule="5m", payload='{"id":1}', policy=Policy(timezone="Europe/Berlin", retries=1)),),
        types=(replace(order, fields=order.fields[:1], doc="new"), DataType("Other")),
    )
    assert list(diff_modules(old, new).lines()) == [
        "~ module: data Order { id: int, note: str | None = null } -> { id: int }",
        "~ module: data Other nothing -> {}",
        "~ verb a: request Unit -> Order",
        '~ verb a: payload nothing -> {"id":1}',
        "~ verb a: timezone nothing -> Europe/Berlin",
        "~ verb a: retries 3 -> 1",
        "~ verb a: retry_on A, b.C -> nothing",
    ]
    [added] = diff_modules(replace(old, verbs=()), old).lines()
    assert added == '+ verb a(Unit) Unit +cron "5m" +retries 3 +retry_on "A, b.C"'


def test_another_name():
    assert list(diff_modules(OLD, replace(OLD, name="bills", namespace="fin")).lines()) == [
        "~ module: namespace default -> fin",
        "~ module: name billing -> bills",
    ]


@given(MODULES)
def test_nothing_differs_from_itself(module: Module):
    moved = replace(module, verbs=tuple(replace(verb, line=7) for verb in reversed(module.verbs)))
    assert not diff_modules(module, moved)
    assert list(diff_modules(module, moved).lines()) == []


@given(MODULES, MODULES)
def test_both_directions_tell_the_same_story(one: Module, other: Module):
    there, back = diff_modules(one, other), diff_modules(other, one)
    assert there.added == back.removed
    assert there.removed == back.added
    assert {change.name for change in there.changed} == {change.name for change in back.changed}
