"""The text form: read, printed, and the same again."""

import pickle
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronring.schema.module import DataField, DataType, Module, Verb
from cronring.schema.policy import Policy
from cronring.schema.text import SchemaError, parse_module, print_module
from cronring.schema.text_print import verb_metadata
from cronring.schema.validate import validate
from tests.support.costs import cpu_s
from tests.unit.schema.strategies import MODULES

CANONICAL = """\
// Money.
//
//   indented, and a tab\there
module fin-1/billing {
  // Closes the month.
  verb close_month(Unit) Unit
    +cron "0 6 1 * *"
    +timeout "5m"
    +on_disconnect finish
    +async

  verb refresh(Unit) Unit
    +every "1h30m"

  verb charge(billing.Order | None) dict[str, list[int]]
    +timeout "500ms"
}
"""
BILLING = Module(
    name="billing",
    namespace="fin-1",
    doc="Money.\n\n  indented, and a tab\there",
    verbs=(
        Verb(
            "close_month",
            schedule="0 6 1 * *",
            timeout_ms=300_000,
            on_disconnect="finish",
            is_async=True,
            doc="Closes the month.",
        ),
        Verb("refresh", schedule="every 1h30m"),
        Verb("charge", "billing.Order | None", "dict[str, list[int]]", timeout_ms=500),
    ),
)


def test_canonical_text():
    assert print_module(BILLING) == CANONICAL
    assert parse_module(CANONICAL) == BILLING


POLICIES = """\
module billing {
  // Closes the month.
  verb close(Closing) Unit
    +cron "0 6 1 * *"
    +timezone "Europe/Berlin"
    +window "Mon-Fri 06:00-18:00"
    +overlap "allow"
    +max_concurrent 3
    +retries 5
    +backoff "30s"
    +retry_on "ConnectionError, requests.Timeout"
    +timeout "5m"
    +payload {"month":1,"tags":["a \\"b\\""]}

  verb refresh(int?) Unit
    +every "6h"
    +anchor "2026-01-01T00:00:00Z"

  verb migrate(Unit) Unit
    +once "2026-03-01T08:00:00Z"

  verb repair(list[Closing]) Unit
    +manual

  // What to close.
  data Closing {
    month: int,
    kind: Literal["full", "part"] = "full",
    note: str | None = null,
    tags?: list[str],
  }

  data Empty {}
}
"""


def test_policies_kinds_and_records():
    module = parse_module(POLICIES)
    assert print_module(module) == POLICIES
    close, refresh, migrate, repair = module.verbs
    assert close.policy == Policy(
        timezone="Europe/Berlin",
        window="Mon-Fri 06:00-18:00",
        overlap="allow",
        max_concurrent=3,
        retries=5,
        backoff="30s",
        retry_on=("ConnectionError", "requests.Timeout"),
    )
    assert close.payload == '{"month":1,"tags":["a \\"b\\""]}'
    assert (refresh.anchor, refresh.request, refresh.request_optional) == ("2026-01-01T00:00:00Z", "int", True)
    assert (migrate.schedule, repair.schedule, repair.payload) == ("at 2026-03-01T08:00:00Z", "manual", "")
    assert module.types == (
        DataType(
            "Closing",
            (
                DataField("month", "int"),
                DataField("kind", 'Literal["full", "part"]', True, '"full"'),
                DataField("note", "str | None", True, "null"),
                DataField("tags", "list[str]", True),
            ),
            "What to close.",
        ),
        DataType("Empty"),
    )


def test_naive_instants_are_in_the_zone_wherever_that_stands():
    text = 'module x {{ verb a(Unit) Unit +{} +timezone "Europe/Berlin" }}'.format
    [once] = parse_module(text('once "2026-07-01 09:00"')).verbs
    assert once.schedule == "at 2026-07-01T07:00:00Z"
    [every] = parse_module(text('anchor "2026-07-01" +every "5m"')).verbs
    assert every.anchor == "2026-06-30T22:00:00Z"


def test_values_are_escaped_as_they_are_read() -> None:
    """No field of today holds a quote. One that does must come back as it was."""
    verb = Verb("a", schedule="every 1h", policy=Policy(window='ask "Ann" in C:\\temp'))
    assert r'+window "ask \"Ann\" in C:\\temp"' in list(verb_metadata(verb))


def test_the_line_of_the_issue():
    text = 'module billing { verb close_month(Unit) Unit +cron "0 6 1 * *" }'
    module = Module("billing", (Verb("close_month", schedule="0 6 1 * *"),))
    assert parse_module(text) == module
    assert print_module(module) == 'module billing {\n  verb close_month(Unit) Unit\n    +cron "0 6 1 * *"\n}\n'
    assert print_module(Module("empty")) == "module empty {\n}\n"


@pytest.mark.parametrize(
    "text",
    [
        CANONICAL.replace("\n", "\r\n"),
        CANONICAL.replace('"1h30m"', '"90m"').replace("billing.Order | None", "billing.Order|None"),
        CANONICAL.replace("    +", " +").replace("\n +", " +"),
        CANONICAL.replace("  // Closes", "  // of nothing: a blank line follows\n\n  // Closes"),
        CANONICAL.replace("Unit) Unit\n", "Unit) Unit // beside\n").replace(
            "    +timeout", "    // inside\n    +timeout"
        ),
        CANONICAL.replace('+cron "0 6 1 * *"', '+cron "0\t6 1 \\* *"').replace("+async", "+async // last")
        + "\n// after\n",
        CANONICAL.replace("    +async", "").replace('+cron "0', '+async +cron "0'),
        "\n\n// apart\n\n" + CANONICAL,
    ],
)
def test_layout_is_free(text: str):
    assert print_module(parse_module(text)) == CANONICAL


def test_comments_that_document_nothing():
    module = parse_module("// a\n\nmodule x { // b\n verb y(Unit) Unit // c\n // d\n\n // e\n}")
    assert module == Module("x", (Verb("y"),))


@given(MODULES)
def test_every_valid_module_comes_back(module: Module):
    assert validate(module) == []
    text = print_module(module)
    assert parse_module(text) == module
    assert print_module(parse_module(text)) == text


@given(MODULES, st.integers(1, 500))
def test_the_text_does_not_say_where_verbs_stand(module: Module, line: int):
    moved = replace(module, verbs=tuple(replace(verb, line=line) for verb in module.verbs))
    assert print_module(moved) == print_module(module)


VERB = "module x {{ verb a({}) {} {} }}".format


@pytest.mark.parametrize(
    ("text", "line", "column", "suggestion", "words"),
    [
        ("", 1, 1, None, "the text ends"),
        ("modul x {}", 1, 1, None, "`modul`, but a module's text starts with `module`"),
        ("// doc\nmodule x-y {}", 2, 8, None, "'x-y' is no name"),
        ("module a.b {}", 1, 8, None, "is no name"),
        ("module a.b/c {}", 1, 8, None, "is no namespace"),
        ("module 1/2 {}", 1, 10, None, "'2' is no name"),
        ("module x/ {}", 1, 11, None, "a name"),
        ("module x", 1, 9, None, "`{` opens the module"),
        ("module x {", 1, 11, None, "`}` closes the module"),
        ("module x {}\n y", 2, 2, None, "nothing follows"),
        ("module x { verb a() Unit }", 1, 19, None, "a type"),
        ("module x { verb a(list[int) Unit }", 1, 23, None, "`)`"),
        ("module x { verb (Unit) Unit }", 1, 17, None, "a name"),
        ("module x {\n\tverb 1a(Unit) Unit }", 2, 7, None, "no name"),
        ("module x { verb a(Unit) Unit\nverb a(Unit) Unit }", 2, 6, None, "declared twice"),
        (VERB("Unit", "Unit", '+cron "0 6 ? * *"'), 1, 41, "0 6 * * *", "`?`"),
        (VERB("Unit", "Unit", '+cron "0 6 \\\\ * *"'), 1, 41, None, "no meaning here"),
        (VERB("Unit", "Unit", '+cron "* * \\3\\0 2 *"'), 1, 41, None, "never"),
        (VERB("Unit", "Unit", '+cron "every 5m"'), 1, 36, '+every "5m"', "an interval is no pattern"),
        (VERB("Unit", "Unit", "+cron 5m"), 1, 36, None, "+cron is followed by a text in quotes"),
        (VERB("Unit", "Unit", '+every "5 min"'), 1, 39, "5m", "' ' starts no unit"),
        (VERB("Unit", "Unit", '+every "500ms"'), 1, 38, None, "whole seconds"),
        (VERB("Unit", "Unit", '+timeout "0s"'), 1, 40, None, "above zero"),
        (VERB("Unit", "Unit", '+timeout "5"'), 1, 41, "5s", "a unit is missing"),
        (VERB("Unit", "Unit", '+cron "5m" +cron "6m"'), 1, 41, None, "+cron again"),
        (VERB("Unit", "Unit", '+cron "5m" +every "6m"'), 1, 41, None, "+every beside +cron"),
        (VERB("Unit", "Unit", "+async +async"), 1, 37, None, "at most one async"),
        (VERB("Unit", "Unit", '+evry "5m"'), 1, 30, "+every", "+evry is no metadata"),
        (VERB("Unit", "Unit", "+on_disconnect go"), 1, 45, None, "neither `stop` nor `finish`"),
        (VERB("Order", "Unit", '+every "5m"'), 1, 26, None, "+payload: is empty, but the verb takes Order"),
        (VERB("int", "Unit", '+every "5m" +payload "x"'), 1, 50, None, '$: is "x", not int'),
        (VERB("int", "Unit", '+every "5m" +payload [1,]'), 1, 50, None, "`[`, but here stands a JSON value"),
        (VERB("int", "Unit", '+every "5m" +payload'), 1, 50, None, "`}`, but here stands a JSON value"),
        (VERB("Unit", "int", '+every "5m"'), 1, 25, "Unit", "returns Unit, not int"),
        (VERB("Unit", "Unit", '+once "2026-3-1"'), 1, 43, "2026-03-01", "an instant is written like"),
        (VERB("Unit", "Unit", '+manual +once "2026-03-01"'), 1, 38, None, "+once beside +manual"),
        (VERB("Unit", "Unit", '+cron "5m" +anchor "2026-03-01"'), 1, 41, None, "there is none"),
        (VERB("Unit", "Unit", '+cron "manual"'), 1, 36, "+manual", "is no pattern"),
        (VERB("Unit", "Unit", '+cron "at 2026-03-01T00:00:00Z"'), 1, 36, '+once "2026-03-01T00:00:00Z"', "no pattern"),
        (VERB("Unit", "Unit", '+timezone "Europe/Berln" +cron "5m"'), 1, 41, "Europe/Berlin", "+timezone: "),
        (VERB("Unit", "Unit", '+cron "5m" +window "Mon-Fri 08:00-25:00"'), 1, 64, None, "+window: "),
        (
            VERB("Unit", "Unit", '+cron "5m" +retries "3"'),
            1,
            50,
            None,
            "+retries is followed by a whole number",
        ),
        (
            VERB("Unit", "Unit", '+cron "5m" +retries -1'),
            1,
            50,
            "0",
            "-1 is outside 0 to 100",
        ),
        (VERB("Unit", "Unit", '+cron "5m" +retries 101'), 1, 50, "100", "+retries: 101 is outside"),
        (VERB("Unit", "Unit", '+cron "5m" +overlap allow'), 1, 50, None, "followed by a text in quotes"),
        (VERB("Unit", "Unit", '+cron "5m" +timezon "UTC"'), 1, 41, "+timezone", "is no metadata"),
        ("module x { data int {} }", 1, 17, None, "a meaning of its own"),
        ("module x { data A {} data A {} }", 1, 27, None, "the record A is declared twice"),
        ("module x { data A { a: int, a: int } }", 1, 29, None, "the field a is declared twice"),
        ("module x { data A { a: int b: int } }", 1, 28, None, "`,` stands between"),
        ("module x { data A { a int } }", 1, 23, None, "`:` stands between"),
        ('module x { data A { a: int = "x" } }', 1, 30, None, 'is "x", not int'),
        ("module x { data A { a?: int = 1 } }", 1, 29, None, "`,` stands between"),
        ('module x { verb a(Unit) Unit +cron "5m\n" }', 1, 36, None, "does not end on its line"),
        ("module x { / }", 1, 12, None, "`/`"),
        ("module x { % }", 1, 12, None, "'%' has no meaning here"),
        ("\ufeffmodule x {}", 1, 1, None, "has no meaning here"),
        ("module \u00e9 {}", 1, 8, None, "has no meaning here"),
        (f"module {'x' * 101} {{}}", 1, 8, None, "101 characters"),
        ("// \x00\nmodule x {}", 1, 1, None, "control characters"),
    ],
)
def test_errors_say_where(text: str, line: int, column: int, suggestion: str | None, words: str):
    with pytest.raises(SchemaError, match=re.escape(words)) as caught:
        parse_module(text)
    error = caught.value
    assert (error.line, error.column, error.suggestion) == (line, column, suggestion)
    assert str(error).startswith(f"{line}:{column}: ")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def fault(text: str) -> SchemaError | None:
    try:
        parse_module(text)
    except SchemaError as error:
        return error
    return None


@given(MODULES, st.data())
def test_a_spoilt_text_names_a_place_inside_it_or_is_another_module(module: Module, data: st.DataObject):
    text = print_module(module)
    place = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 5))
    spoilt = text[:place] + data.draw(st.text('{}()"+/\\\n a1?', max_size=3)) + text[place + length :]
    error = fault(spoilt)
    if error is None:
        again = parse_module(spoilt)
        assert parse_module(print_module(again)) == again
    else:
        assert 1 <= error.line <= spoilt.count("\n") + 1
        assert 1 <= error.column <= len(spoilt) + 1


HOSTILE = [
    "module x {" + "verb " * 100_000,
    "module x { verb a(" + "A|" * 200_000 + "A) Unit }",
    "module x { verb a(" + "A[" * 100_000,
    '"' * 300_000,
    "/" * 300_000,
    "//\n" * 100_000,
    "\n" * 500_000,
    'module x { verb a(Unit) Unit +cron "' + "\\" * 300_000,
    "+" * 300_000,
    "module x { verb a(Unit) Unit " + "+async " * 100_000 + "}",
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts_take_time_by_their_length_only(text: str):
    assert fault(text) is not None
    assert cpu_s(lambda: fault(text), best_of=2) < 2


def test_five_thousand_verbs_take_half_a_second():
    verbs = [
        Verb(
            f"verb_{n}",
            schedule=f"{n % 60} {n % 24} {n % 28 + 1} * *",
            timeout_ms=60_000,
            policy=Policy(timezone="Europe/Berlin", retries=3),
            doc=f"The {n}th.\nTwo lines.",
        )
        for n in range(5_000)
    ]
    module = Module("big", tuple(verbs))
    assert validate(module) == []
    assert parse_module(print_module(module)) == module
    assert cpu_s(lambda: (validate(module), parse_module(print_module(module))), best_of=3) < 3
