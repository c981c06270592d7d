"""From a child's dump to a module, or to what the author has to mend."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cronring.schema.declaration import Problem, read_declaration
from cronring.schema.module import DataField, DataType, Module, Verb
from cronring.schema.policy import FIELDS, Policy
from cronring.schema.validate import validate
from tests.drawing import examples

CTX = {"name": "ctx", "annotation": "Context", "has_default": False, "kind": "positional"}


def param(name: str, annotation: str | None, kind: str = "positional") -> dict[str, Any]:
    return {"name": name, "annotation": annotation, "has_default": False, "kind": kind}


def verb(name: str = "close", **fields: Any) -> dict[str, Any]:
    plain = {"name": name, "line": 12, "is_async": False, "doc": "", "params": [], "returns": None}
    return plain | {"cron": None, "every": None, "timeout": None, "on_disconnect": None} | fields


def dump(*verbs: dict[str, Any], **fields: Any) -> dict[str, Any]:
    plain = {"version": 1, "module": "billing", "namespace": "default", "file": "billing.py", "doc": "", "problems": []}
    return plain | {"verbs": list(verbs)} | fields


def only_problem(value: object) -> Problem:
    found = read_declaration(value)
    assert isinstance(found, list)
    assert len(found) == 1, found
    return found[0]


def test_a_whole_module():
    declared = dump(
        verb(cron=" 0 6  1 * *", params=[CTX], returns="None", is_async=True, doc="Closes.", timeout="90s"),
        verb("refresh", every="90m", line=20, on_disconnect="finish"),
        verb("charge", params=[CTX, param("order", "billing.Order|None")], returns="list[int]", line=30),
        verb("anything", params=[param("value", None)], returns="None", line=40),
        verb("odd", params=[param("value", "Literal['a']")], returns="Callable[..., int]", line=50),
        doc="Money.\r\nMore.",
        namespace="fin",
    )
    assert read_declaration(json.loads(json.dumps(declared))) == Module(
        "billing",
        (
            Verb("close", schedule="0 6 1 * *", timeout_ms=90_000, is_async=True, doc="Closes.", line=12),
            Verb("refresh", schedule="every 1h30m", on_disconnect="finish", line=20),
            Verb("charge", "billing.Order | None", "list[int]", line=30),
            Verb("anything", "Any", "Unit", line=40),
            Verb("odd", "Any", "Callable[..., int]", line=50),
        ),
        "fin",
        "Money.\nMore.",
    )


def test_kinds_of_jobs_and_their_policies():
    zone = {"timezone": "Europe/Berlin"}
    declared = dump(
        verb("a", once="2026-03-01 09:00", policy=zone),
        verb("b", every="6h", anchor="2026-03-01", policy=zone | {"jitter": 0.1, "retries": 3, "retry_on": ["a.B"]}),
        verb("c", manual=True, params=[CTX, param("order", "int")]),
        verb("d", cron="5m", params=[param("n", "int") | {"has_default": True}]),
        verb("e", cron="5m", params=[CTX, param("n", "mod.N") | {"type": "N"}], payload={"n": None}),
        types=[
            {"name": "N", "doc": "A number.", "fields": [{"name": "n", "type": "int|None"}]},
            {
                "name": "M",
                "fields": [
                    {"name": "m", "type": "N", "optional": True},
                    {"name": "o", "type": "list[int]", "optional": True, "default": [1]},
                    {"name": "p", "type": "Callable[[int], int]", "optional": True, "default": None},
                ],
            },
        ],
    )
    module = read_declaration(json.loads(json.dumps(declared)))
    assert isinstance(module, Module), module
    assert module.verbs == (
        Verb("a", schedule="at 2026-03-01T08:00:00Z", policy=Policy(timezone="Europe/Berlin"), line=12),
        Verb(
            "b",
            schedule="every 6h",
            anchor="2026-02-28T23:00:00Z",
            policy=Policy(timezone="Europe/Berlin", jitter="10%", retries=3, retry_on=("a.B",)),
            line=12,
        ),
        Verb("c", "int", schedule="manual", line=12),
        Verb("d", "int", schedule="5m", request_optional=True, line=12),
        Verb("e", "N", schedule="5m", payload='{"n":null}', line=12),
    )
    fields = (DataField("m", "N", True), DataField("o", "list[int]", True, "[1]"), DataField("p", "Any", True, "null"))
    assert module.types == (DataType("N", (DataField("n", "int | None"),), "A number."), DataType("M", fields))


def test_the_least_that_a_child_may_say():
    found = read_declaration({"version": 1, "file": "a/b/nightly.py", "verbs": [{"name": "run", "every": "5s"}]})
    assert found == Module("nightly", (Verb("run", schedule="every 5s"),))


@pytest.mark.parametrize("annotation", ["Context", "cronring.Context", "'Context'", '"cronring.Context"', "c.Context"])
def test_spellings_of_context(annotation: str):
    found = read_declaration(dump(verb(cron="5m", params=[param("ctx", annotation)])))
    assert isinstance(found, Module)


@pytest.mark.parametrize(
    ("declared", "message", "remedy"),
    [
        (verb(cron="5m", every="5m"), "both @cron and @every", "keep one"),
        (
            verb(cron="0 6 ? * *"),
            '@cron("0 6 ? * *"): day-of-month field, character 5: `?`',
            'write @cron("0 6 * * *")',
        ),
        (verb(cron="61 * * * *"), "`61` is outside 0 to 59", "docs/schedules.md"),
        (verb(cron="* * 30 2 *"), "never", "docs/schedules.md"),
        (verb(cron="x" * 10_000), "10000 characters", ""),
        (verb(cron="every 5m"), "@cron takes a pattern", 'write @every("5m")'),
        (verb(every="5 min"), '@every("5 min"), character 2', 'write @every("5m")'),
        (verb(every="* * * * *"), '@every("* * * * *"), character 1', ""),
        (verb(every="500ms"), "whole seconds", ""),
        (verb(cron="5m", timeout="5"), 'timeout="5", character 2: a unit is missing', 'write timeout="5s"'),
        (verb(timeout="soon"), 'timeout="soon"', 'write timeout="5m", for example'),
        (verb(on_disconnect="wait"), 'on_disconnect="wait" is neither "stop" nor "finish"', 'on_disconnect="finish"'),
        (verb("caf\u00e9"), "no name", "rename the function"),
        (verb("<lambda>", cron="5m"), "no name", "rename the function"),
        (verb(cron="5m", params=[param("ctx", None)]), "ctx has no type", "`ctx: Context`"),
        (verb(cron="5m", params=[param("order", "Order")]), "order is a Order", "`order: Context`"),
        (verb(cron="5m", params=[param("ctx", "Context | None")]), "ctx is a Context | None", "`ctx: Context`"),
        (
            verb(cron="5m", params=[CTX, param("n", "int")]),
            "its parameter n is a int, and its schedule has none to give",
            "@cron(…, payload=…)",
        ),
        (verb(cron="5m", params=[CTX, param("n", "int"), param("m", "int")]), "not 2 (n, m)", "in one type"),
        (verb(cron="5m", params=[CTX], payload={}), "has no parameter for it", "payload: dict"),
        (verb(cron="5m", params=[param("n", "int")], payload="x"), 'payload: $: is "x", not int', ""),
        (verb(cron="5m", once="2026-03-01"), "both @cron and @once", "keep one"),
        (verb(cron="5m", every="5m", manual=True), "it has @cron and @every and @manual", "keep one"),
        (verb(once="2026-3-1 09:00"), '@once("2026-3-1 09:00"), character 7', 'write @once("2026-03-01T09:00:00")'),
        (verb(once="2026-03-29 02:30", policy={"timezone": "Europe/Berlin"}), "skip this time", "write @once("),
        (verb(cron="at 2026-03-01T08:00:00Z"), "@cron takes a pattern", 'write @once("2026-03-01T08:00:00Z")'),
        (verb(cron="manual"), "@cron takes a pattern", "write @manual"),
        (verb(cron="5m", anchor="2026-03-01"), "anchor is where an interval counts from", "write @every"),
        (verb(every="5m", anchor="soon"), 'anchor="soon", character 1', 'write anchor="2026-03-01 09:00"'),
        (
            verb(cron="5m", policy={"timezone": "Europe/Berln"}),
            'timezone="Europe/Berln", character 1',
            'write timezone="Europe/Berlin"',
        ),
        (verb(cron="5m", policy={"retries": 101}), "retries=101: 101 is outside", "write retries=100"),
        (verb(cron="5m", policy={"retries": True}), "retries=True: ", "docs/schedules.md"),
        (verb(cron="5m", policy={"overlap": "queue"}), 'overlap="queue", character 1', 'write overlap="buffer_one"'),
        (verb(every="5m", policy={"dst_gap": "skip"}), "dst_gap: is about times of the day", "write a pattern"),
        (verb(manual=True, policy={"window": "Mon-Fri 08:00-18:00"}), "window: says when ticks run", "leave it out"),
        (verb(every="5m", params=[param("ctx", "Context", "keyword")]), "not positional", "def close"),
        (verb(every="5m", params=[param("args", None, "var_positional")]), "not positional", "def close"),
        (verb(cron="5m", returns="int"), "returns int", "`-> None`"),
        (verb(cron="5m", returns="None | int"), "returns None | int", "`-> None`"),
        (verb(params=[CTX, param("a", "int"), param("b", "int")]), "not 2 (a, b)", "in one type"),
    ],
)
def test_problems_name_file_line_verb_and_remedy(declared: dict[str, Any], message: str, remedy: str):
    problem = only_problem(dump(declared))
    assert problem[:3] == ("billing.py", 12, declared["name"])
    assert message in problem.message
    assert remedy in problem.remedy
    assert problem.remedy or not remedy
    assert len(str(problem)) < 600
    assert str(problem).startswith(f"billing.py:12: verb {declared['name']}: ")


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (dump(), "declares no verb"),
        (dump(verb(), module="my-module"), "'my-module' is no name"),
        (dump(verb(), module=None, file="/srv/2nd.py"), "'2nd' is no name"),
        (dump(verb(), namespace="a b"), "no namespace"),
        (dump(*[verb(f"v{n}", line=n) for n in range(10_001)]), "10001 verbs"),
    ],
)
def test_problems_of_the_whole_file(declared: dict[str, Any], message: str):
    problem = only_problem(declared)
    assert (problem.line, problem.verb) == (0, "")
    assert message in problem.message


def test_what_the_child_found_is_passed_on_in_order():
    found = read_declaration(
        dump(
            verb(line=9, cron="bad"),
            verb(line=30, cron="5m"),
            problems=[
                {"line": 30, "verb": "close", "message": "declared already, in line 9", "remedy": "rename"},
                {"line": 2, "verb": "", "message": "ImportError: \x1b[31mred\ud800", "remedy": "install it"},
                {},
            ],
        )
    )
    assert isinstance(found, list)
    assert [(problem.line, problem.verb) for problem in found] == [(0, ""), (2, ""), (9, "close"), (30, "close")]
    assert found[1].message == "ImportError: \ufffd[31mred\ufffd"
    assert str(found[1]) == "billing.py:2: ImportError: \ufffd[31mred\ufffd (install it)"


def test_a_file_that_does_not_import_is_one_problem():
    failed = dump(problems=[{"line": 3, "verb": "", "message": "SyntaxError: oops", "remedy": "correct the syntax"}])
    assert only_problem(failed) == Problem("billing.py", 3, "", "SyntaxError: oops", "correct the syntax")


def test_the_same_name_twice():
    problem = only_problem(dump(verb(line=3), verb(line=7)))
    assert problem[1:4] == (7, "close", "a verb of this name is declared already, in line 3")


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        "x",
        1,
        {},
        {"version": 2},
        {"version": True},
        {"version": "1"},
        dump(verb()) | {"verbs": {}},
        dump(verb()) | {"verbs": [1]},
        dump(verb()) | {"problems": "none"},
        dump(verb()) | {"problems": [None]},
        dump(verb(line="12")),
        dump(verb(line=-1)),
        dump(verb(line=2**40)),
        dump(verb(line=1.5)),
        dump(verb(params="ctx")),
        dump(verb(params=[["ctx"]])),
        dump(verb(cron=5)),
        dump(verb(timeout=300)),
        dump(verb(doc=["x"])),
        dump(verb(), file=7),
        dump(verb(once=7)),
        dump(verb(every="5m", anchor=7)),
        dump(verb(policy=[1])),
        dump(verb(payload=float("nan"))),
        dump(verb(payload="\ud800")),
        dump(verb(), types={}),
        dump(verb(), types=[{"name": "A", "fields": [7]}]),
        dump(verb(), types=[{"name": "A", "fields": [{"name": "a", "default": float("inf")}]}]),
    ],
)
def test_what_no_child_says_is_a_problem_too(value: object):
    assert "described its module in a way that is not understood" in only_problem(value).message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
SOME = JSON | st.sampled_from(
    ["5m", "Context", "None", "0 6 1 * *", "positional", "a", 3, "Europe/Berlin", "2026-03-01"]
)


def shaped(*keys: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=dict.fromkeys(keys, SOME))


PARAMETER = shaped("name", "annotation", "type", "has_default", "kind")
DATA = st.builds(
    lambda data, fields: data | {"fields": fields},
    shaped("name", "doc"),
    st.lists(shaped("name", "type", "optional", "default") | SOME, max_size=2),
)
VERB = st.builds(
    lambda fields, parameters: fields | parameters,
    shaped("name", "line", "is_async", "doc", "returns", "timeout", "on_disconnect", "anchor", "payload"),
    st.fixed_dictionaries(
        {},
        optional={
            "params": st.lists(PARAMETER | SOME, max_size=2),
            "policy": shaped(*(field.name for field in FIELDS)) | SOME,
            "cron": SOME,
            "every": SOME,
            "once": SOME,
            "manual": SOME,
        },
    ),
)
DUMP = st.builds(
    lambda fields, lists: {"version": 1} | fields | lists,
    shaped("module", "namespace", "file", "doc"),
    st.fixed_dictionaries(
        {},
        optional={
            "verbs": st.lists(VERB | SOME, max_size=3),
            "types": st.lists(DATA | SOME, max_size=2),
            "problems": st.lists(shaped("line", "verb", "message", "remedy") | SOME, max_size=2),
        },
    ),
)


@settings(max_examples=examples(300))
@given(JSON | DUMP)
def test_any_json_value_is_a_module_or_problems(value: object):
    found = read_declaration(value)
    if isinstance(found, Module):
        assert validate(found) == []
    else:
        assert found
        for problem in found:
            assert problem.message
            str(problem).encode()


def test_five_thousand_verbs():
    declared = dump(*[verb(f"v{n}", line=n + 1, cron=f"{n % 60} * * * *", params=[CTX]) for n in range(5_000)])
    found = read_declaration(declared)
    assert isinstance(found, Module)
    assert len(found.verbs) == 5_000


def test_every_wrong_policy_of_a_verb_is_told_at_once():
    wrong = {"timezone": "Europe/Belrin", "overlap": "alow", "retries": -1, "window": "Mon-Fri 08:00-18:00"}
    problems = read_declaration(dump(verb(cron="0 9 * * *", policy=wrong)))
    assert isinstance(problems, list)
    assert [problem.message.partition("=")[0] for problem in problems] == ["timezone", "overlap", "retries"]
