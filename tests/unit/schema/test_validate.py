import pytest

from schema.module import Module, Verb
from schema.types import canonical_type
from schema.validate import DOC_LIMIT, clean_doc, doc_fault, validate


def one(**options: object) -> Module:
    return Module("m", (Verb("first"), Verb(**{"name": "second", **options})))  # type: ignore[arg-type] # bad on purpose


@pytest.mark.parametrize(
    ("module", "path", "words"),
    [
        (Module(""), "name", "empty"),
        (Module("a-b"), "name", "'a-b' is no name"),
        (Module("1a"), "name", "no name"),
        (Module("caf\u00e9"), "name", "no name"),
        (Module("a\n"), "name", "no name"),
        (Module("x" * 101), "name", "101 characters"),
        (Module("m", namespace=""), "namespace", "empty"),
        (Module("m", namespace="-a"), "namespace", "no namespace"),
        (Module("m", namespace="a/b"), "namespace", "no namespace"),
        (Module("m", doc="a\x00"), "doc", "control"),
        (Module("m", doc="\ud800"), "doc", "surrogate"),
        (Module("m", doc="x" * (DOC_LIMIT + 1)), "doc", "at most"),
        (Module("m", tuple(Verb(f"v{n}") for n in range(10_001))), "verbs", "10001 verbs"),
        (Module("m", tuple(Verb(f"v{n}", doc="x" * 60_000) for n in range(150))), "verbs", "in all"),
        (one(name="first"), "verbs[1].name", "verbs[0] has the name 'first' already"),
        (one(name="a.b"), "verbs[1].name", "no name"),
        (one(schedule="61 * * * *"), "verbs[1].schedule", "minute field, character 1"),
        (one(schedule="@daily"), "verbs[1].schedule", "write '0 0 * * *'"),
        (one(schedule="* * 30 2 *"), "verbs[1].schedule", "never"),
        (one(schedule="0 6  1 * *"), "verbs[1].schedule", "is written '0 6 1 * *'"),
        (one(schedule="every 90m"), "verbs[1].schedule", "is written 'every 1h30m'"),
        (one(schedule="every 0s"), "verbs[1].schedule", "above zero"),
        (one(schedule="5m", request="Order"), "verbs[1].request", "takes and returns Unit"),
        (one(schedule="5m", response="int"), "verbs[1].response", "takes and returns Unit"),
        (one(request=""), "verbs[1].request", "no type"),
        (one(request="a b"), "verbs[1].request", "no type"),
        (one(response="A|B"), "verbs[1].response", "is written 'A | B'"),
        (one(timeout_ms=-1), "verbs[1].timeout_ms", "is -1"),
        (one(timeout_ms=2**63 - 1), "verbs[1].timeout_ms", "it must be from 0"),
        (one(on_disconnect=""), "verbs[1].on_disconnect", "'stop' or 'finish'"),
        (one(on_disconnect="x" * 10_000), "verbs[1].on_disconnect", "'stop' or 'finish'"),
        (one(doc="\x1b[31m"), "verbs[1].doc", "control"),
        (one(line=-1), "verbs[1].line", "line"),
    ],
)
def test_each_flaw_is_named_by_its_field(module: Module, path: str, words: str):
    flaws = validate(module)
    assert [flaw.path for flaw in flaws] == [path]
    assert words in flaws[0].message
    assert len(flaws[0].message) < 400


def test_all_flaws_are_named_at_once_but_not_without_end():
    assert len(validate(Module("", (Verb("", schedule="x", timeout_ms=-1),), "", "\x00"))) == 6
    assert 100 <= len(validate(Module("m", tuple(Verb(f"{n}") for n in range(9_000))))) < 120


def test_a_good_module_has_none():
    verbs = (Verb("a", schedule="0 6 1 * *"), Verb("b", "Order", "list[int]"), Verb("c", schedule="every 5m"))
    assert validate(Module("m", verbs, "team-a", "Text.\n\tMore.")) == []


def test_clean_docs_are_fit():
    spoilt = "a\r\nb\x00\x7f\ud800\tc" + "x" * DOC_LIMIT
    assert clean_doc(spoilt).startswith("a\nb\ufffd\ufffd\ufffd\tc")
    assert doc_fault(clean_doc(spoilt)) is None


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("Unit", "Unit"),
        (" a.b.C ", "a.b.C"),
        ("dict[str,list[int]]|None", "dict[str, list[int]] | None"),
        ("A[B][C]", None),
        ("", None),
        ("A |", None),
        ("| A", None),
        ("A[]", None),
        ("A[B", None),
        ("A]", None),
        ("A, B", None),
        ("A B", None),
        ("A.", None),
        ("A..B", None),
        ("1", None),
        ("Literal['a']", None),
        ("A\n", None),
        ("A" * 501, None),
        ("A|" * 200 + "A", None),  # canonical, it would be too long
    ],
)
def test_types(text: str, canonical: str | None):
    assert canonical_type(text) == canonical
