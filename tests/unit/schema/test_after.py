"""`after`: circles, words, texts, and what check and lint say of it."""

from typing import Any

import pytest

from cronring.schema.after import cycle_fault, cycle_of
from cronring.schema.declaration import read_declaration
from cronring.schema.lint import follows_nobody, lint_module
from cronring.schema.module import Module, Verb
from cronring.schema.policy import Policy, parse_policy
from cronring.schema.schedule import parse_schedule
from cronring.schema.text import parse_module, print_module
from cronring.schema.validate import validate

AFTER = Policy(after="billing.close")


def follower(name: str, after: str, **fields: Any) -> Verb:
    return Verb(name, schedule="manual", policy=Policy(after=after), **fields)


@pytest.mark.parametrize(
    ("after", "cycle"),
    [
        ({}, []),
        ({"a": "b"}, []),
        ({"a": "a"}, ["a"]),
        ({"a": "b", "b": "a"}, ["a", "b"]),
        ({"a": "b", "b": "c", "c": "a"}, ["a", "b", "c"]),
        ({"a": "b", "b": "c", "c": "b"}, []),  # a leads into a circle, and is in none
        ({"a": "b", "b": "b"}, []),
    ],
)
def test_circles(after: dict[str, str], cycle: list[str]) -> None:
    assert cycle_of("a", after) == cycle


def test_circles_in_words() -> None:
    assert cycle_fault(["m.a"]) == "m.a can't run after itself"
    assert cycle_fault(["m.a", "m.b", "m.c"]).startswith(
        "m.a runs after m.b, which runs after m.c, which runs after m.a: none of them would ever begin"
    )


def test_its_schedule_in_words_and_without_ticks() -> None:
    schedule = parse_schedule("manual", 0, AFTER)
    assert (schedule.words(), schedule.text, schedule.next_after(0)) == ("after billing.close", "manual", None)
    assert parse_schedule("manual", 0).words() == "only when triggered"
    assert parse_policy(AFTER.text) == AFTER


def test_a_module_in_a_circle_is_refused() -> None:
    module = Module("m", (follower("a", "m.b"), follower("b", "m.a"), follower("c", "m.b")))
    assert [flaw.path for flaw in validate(module)] == ["verbs[0].policy.after", "verbs[1].policy.after"]
    assert validate(Module("m", (follower("a", "m.a"),), "team"))[0:] == []  # that is another module's
    assert [flaw.path for flaw in validate(Module("m", (follower("a", "team/m.a"),), "team"))] == [
        "verbs[0].policy.after"
    ]


def test_its_text_form_reads_back() -> None:
    module = Module("m", (Verb("close", schedule="0 6 1 * *"), follower("a", "m.close")))
    text = print_module(module)
    assert '    +manual\n    +after "m.close"\n' in text
    assert parse_module(text) == module
    with pytest.raises(ValueError, match="write one of the two"):
        parse_module(text.replace("+manual", '+cron "* * * * *"'))


def test_lint_names_who_follows_nobody() -> None:
    verbs = (
        Verb("close", schedule="0 6 1 * *"), Verb("plain"), follower("a", "m.close"), follower("b", "m.clsoe", line=7),
        follower("c", "m.plain"), follower("d", "other.job"), follower("e", "m.close:berlin"),
    )  # fmt: skip
    found = follows_nobody(Module("m", verbs))
    assert [(each.rule, each.verb) for each in found] == [("follows-nobody", name) for name in ("b", "c", "e")]
    assert "m.clsoe, and the module has no such job" in found[0].message
    assert {each.verb for each in lint_module(Module("m", verbs), 0) if each.rule == "follows-nobody"} == {
        "b",
        "c",
        "e",
    }


def declared(**fields: Any) -> Module | list[Any]:
    verb = {"name": "report", "line": 12, "params": [], "returns": None, "policy": {"after": "billing.close"}} | fields
    return read_declaration({"version": 1, "module": "m", "file": "m.py", "verbs": [verb]})


def test_declared_without_a_pattern_it_is_a_job_without_ticks() -> None:
    module = declared(manual=True)
    assert isinstance(module, Module)
    assert (module.verbs[0].schedule, module.verbs[0].policy) == ("manual", AFTER)


def test_declared_with_a_pattern_or_in_need_of_a_payload_it_is_refused() -> None:
    both = declared(cron="0 6 1 * *")
    assert isinstance(both, list)
    assert (both[0].line, both[0].verb, both[0].remedy) == (12, "report", "write one of the two")
    needy = declared(
        manual=True, params=[{"name": "order", "annotation": "int", "type": "int", "has_default": False,
                              "kind": "positional"}],
    )  # fmt: skip
    assert isinstance(needy, list)
    assert "its schedule has none to give" in needy[0].message
