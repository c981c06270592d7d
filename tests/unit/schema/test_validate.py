import pytest

from cronring.schema.module import DataField, DataType, Module, Verb
from cronring.schema.policy import Policy
from cronring.schema.types import canonical_type
from cronring.schema.validate import DOC_LIMIT, clean_doc, doc_fault, misfit_faults, validate


def one(**options: object) -> Module:
    return Module("m", (Verb("first"), Verb(**{"name": "second", **options})))  # type: ignore[arg-type] # bad on purpose


def record(*fields: DataField) -> Module:
    return Module("m", types=(DataType("R", fields),))


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
        (one(schedule="5m", request="Order"), "verbs[1].payload", "is empty, but the verb takes Order"),
        (one(schedule="5m", request="int", payload='"x"'), "verbs[1].payload", '$: is "x", not int'),
        (one(schedule="5m", request="int", payload="x"), "verbs[1].payload", "no JSON"),
        (one(schedule="5m", request="dict", payload="{ }"), "verbs[1].payload", "is written '{}'"),
        (one(schedule="5m", payload="{}"), "verbs[1].payload", "the verb takes none"),
        (one(request="int", payload="1"), "verbs[1].payload", "there is none"),
        (one(schedule="5m", response="int"), "verbs[1].response", "returns Unit"),
        (one(schedule="5m", policy=Policy(timezone="Mars")), "verbs[1].policy.timezone", "Mars"),
        (one(schedule="5m", policy=Policy(timezone="UTC")), "verbs[1].policy.timezone", "'UTC' is written ''"),
        (one(schedule="5m", policy=Policy(overlap="skip")), "verbs[1].policy.overlap", "'skip' is written ''"),
        (one(schedule="5m", policy=Policy(retries=-1)), "verbs[1].policy.retries", "outside 0 to 100"),
        (one(schedule="5m", policy=Policy(backoff="90s", retries=1)), "verbs[1].policy.backoff", "is written '1m30s'"),
        (one(schedule="5m", policy=Policy(max_concurrent=3)), "verbs[1].policy.max_concurrent", "overlap=allow"),
        (one(schedule="manual", policy=Policy(window="08:00-18:00")), "verbs[1].policy.window", "leave it out"),
        (one(schedule="5m", anchor="2026-03-01T00:00:00Z"), "verbs[1].anchor", "an interval counts from"),
        (one(schedule="every 5m", anchor="2026-03-01"), "verbs[1].anchor", "is written '2026-03-01T00:00:00Z'"),
        (one(schedule="every 5m", anchor="soon"), "verbs[1].anchor", "an instant is written like"),
        (Module("m", types=(DataType("int"),)), "types[0].name", "a meaning of its own"),
        (Module("m", types=(DataType("a b"),)), "types[0].name", "no name"),
        (Module("m", types=(DataType("A"), DataType("A"))), "types[0].name", "another record"),
        (record(DataField("a b", "int")), "types[0].fields[0].name", "no name"),
        (record(DataField("a", "int"), DataField("a", "int")), "types[0].fields[1].name", "declared twice"),
        (record(DataField("a", "a b")), "types[0].fields[0].type", "no type"),
        (record(DataField("a", "int", True, '"x"')), "types[0].fields[0].default", 'is "x", not int'),
        (record(DataField("a", "int", False, "1")), "types[0].fields[0].default", "optional"),
        (record(DataField("a", "int", True, "1 ")), "types[0].fields[0].default", "is written '1'"),
        (Module("m", types=tuple(DataType(f"T{n}") for n in range(1_001))), "types", "1001 records"),
        (record(*[DataField(f"f{n}", "int") for n in range(501)]), "types[0].fields", "501 fields"),
        (one(request=""), "verbs[1].request", "no type"),
        (one(request="a b"), "verbs[1].request", "no type"),
        (one(response="A|B"), "verbs[1].response", "is written 'A | B'"),
        (one(timeout_ms=-1), "verbs[1].timeout_ms", "is -1"),
        (one(timeout_ms=2**63 - 1), "verbs[1].timeout_ms", "it must be from 1"),
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
    verbs = (
        Verb("a", schedule="0 6 1 * *", policy=Policy(timezone="Europe/Berlin", retries=3, backoff="1m")),
        Verb("b", "Order", "list[int]"),
        Verb("c", schedule="every 5m", anchor="2026-01-01T00:00:00Z"),
        Verb("d", "Order", schedule="manual"),
        Verb("e", "Order", schedule="5m", payload='{"id":1}'),
        Verb("f", "Order", schedule="5m", request_optional=True),
        Verb("g", schedule="at 2026-01-01T00:00:00Z"),
    )
    order = DataType("Order", (DataField("id", "int"), DataField("note", "str | None", True, "null")))
    assert validate(Module("m", verbs, "team-a", "Text.\n\tMore.", (order,))) == []


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
        ('Literal["a",-1,true]|None', 'Literal["a", -1, true] | None'),
        ('Literal["\\u00e9 \\" |]"]', 'Literal["é \\" |]"]'),
        ("Literal[A]", None),
        ("Literal[]", None),
        ('Literal["a",]', None),
        ('Literal["a"][B]', None),
        ('Literal["\\ud800"]', None),
        ("tuple[int,...]", "tuple[int, ...]"),
        ("...", None),
        ("A...", None),
        ("A\n", None),
        ("A" * 501, None),
        ("A|" * 200 + "A", None),  # canonical, it would be too long
    ],
)
def test_types(text: str, canonical: str | None):
    assert canonical_type(text) == canonical


@pytest.mark.parametrize(
    ("request_type", "schedule", "after", "payload", "words"),
    [
        ("Unit", "0 0 * * *", "", '{"n":1}', "v takes no payload"),
        ("Unit", "0 0 * * *", "", "", ""),
        ("int", "0 0 * * *", "", "7", ""),
        ("int", "0 0 * * *", "", '"7"', "7"),
        ("int", "0 0 * * *", "", "", "it has none, and v takes a int"),
        ("int", "manual", "m.other", "", "it has none, and v takes a int"),
        ("int", "manual", "", "", ""),  # whoever runs it gives one
    ],
)
def test_the_payload_of_a_job_made_by_hand_fits_or_does_not(
    request_type: str, schedule: str, after: str, payload: str, words: str
) -> None:
    verb = Verb("v", request=request_type)
    faults = misfit_faults(Module("m", (verb,)), verb, schedule, Policy(after=after), payload)
    assert [words in fault for fault in faults] == [True] * bool(words)
