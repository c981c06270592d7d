"""Random patterns and modules."""

from typing import Any

from hypothesis import strategies as st

from cronring.schema.duration import DURATION_LIMIT_MS
from cronring.schema.instant import format_instant
from cronring.schema.module import DataField, DataType, Module, Verb
from cronring.schema.pattern import CronPattern, PatternError
from cronring.schema.payload import RESERVED, canonical_json
from cronring.schema.policy import FIELDS, Policy, PolicyError, policy_faults, read_policy
from cronring.schema.schedule import check_schedule, is_interval

BOUNDS = [(0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (0, 7), (1970, 2099)]
INSTANTS = st.integers(-100_000, 4_102_444_800 + 100_000)  # a day around 1970 to 2099


@st.composite
def terms(draw: st.DrawFn, low: int, high: int) -> str:
    number = st.integers(low, high)
    zeros = "0" * draw(st.sampled_from([0, 0, 0, 0, 1, 2]))
    step = f"/{draw(st.integers(1, high))}"
    match draw(st.sampled_from(["a", "a", "a-b", "a-b", "*", "*/n", "a/n", "a-b/n"])):
        case "a":
            return zeros + str(draw(number))
        case "a-b" | "a-b/n" as shape:
            first, last = sorted([draw(number), draw(number)])
            return f"{first}-{zeros}{last}" + (step if shape == "a-b/n" else "")
        case "*":
            return "*"
        case "*/n":
            return f"*{step}"
        case _:
            return f"{draw(number)}{step}"


def fields(low: int, high: int, wild: int = 1) -> st.SearchStrategy[str]:
    some = st.lists(terms(low, high), min_size=1, max_size=3).map(",".join)
    return st.one_of(*[st.just("*")] * wild, some)


def fires(text: str) -> bool:
    try:
        CronPattern.parse(text)
    except PatternError:
        return False
    return True


YEARS = st.integers(1970, 2099).map(str) | st.tuples(st.integers(1970, 2099), st.integers(1, 40)).map(
    lambda pair: f"{pair[0]}/{pair[1]}"
)
SHORT_FORMS = (
    st.builds("{}{}".format, st.integers(1, 59), st.sampled_from("sm"))
    | st.builds("{}h".format, st.integers(1, 23))
    | st.sampled_from(["Mon", "tuesday", "WED", "thu", "Friday", "sat", "SUN"])
)
FIVE = st.tuples(*[fields(*bounds) for bounds in BOUNDS[1:6]]).map(" ".join)
SIX = st.tuples(*[fields(*bounds) for bounds in BOUNDS[:6]]).map(" ".join)
SIX_WITH_YEAR = st.tuples(FIVE, YEARS).map(" ".join)
SEVEN = st.tuples(*[fields(*bounds) for bounds in BOUNDS]).map(" ".join)
PATTERNS = st.one_of(FIVE, SIX, SIX_WITH_YEAR, SEVEN, SHORT_FORMS).filter(fires)

IDENTIFIERS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,12}", fullmatch=True)
NAMESPACES = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,12}", fullmatch=True)
DOCS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters=[chr(n) for n in (*range(9), *range(11, 32), 127)]),
    max_size=40,
)
INTERVALS = st.integers(1, 10_000_000).map(lambda seconds: f"every {seconds}s")
WHOLE_INSTANTS = st.integers(0, 4_102_444_799).map(lambda second: format_instant(second * 1_000_000))
ONCE = WHOLE_INSTANTS.map(lambda instant: f"at {instant}")
SCHEDULES = (PATTERNS | INTERVALS | ONCE | st.just("manual")).map(check_schedule)
DURATIONS = st.builds("{}{}".format, st.integers(1, 120), st.sampled_from(["s", "m"]))
_POLICY_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "timezone": st.sampled_from(["Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "Etc/GMT+5"]),
    "dst_gap": st.just("skip"),
    "dst_overlap": st.sampled_from(["both", "second"]),
    "start_at": WHOLE_INSTANTS,
    "end_at": WHOLE_INSTANTS | st.just("2030-01-01"),
    "window": st.sampled_from(
        ["Mon-Fri 08:00-18:00", "22:00-06:00", "Sat,Sun 10:00-12:00 Asia/Tokyo, Mon 00:00-24:00"]
    ),
    "jitter": st.sampled_from(["off", "auto", "5%", "±5%", "+-3s", "30s", "5m:3s 1h:10s 1d:30s 7d:60s", 0.25, 0]),
    "on_missed": st.sampled_from(["skip", "run_all", "run_last"]),
    "catch_up_window": DURATIONS,
    "overlap": st.sampled_from(["buffer_one", "buffer_all", "cancel_running", "allow"]),
    "max_concurrent": st.integers(1, 100),
    "retries": st.integers(0, 100),
    "backoff": DURATIONS,
    "retry_on": st.lists(st.sampled_from(["ConnectionError", "requests.Timeout", "lost"]), min_size=1, unique=True),
    "pause_after_failures": st.integers(1, 1_000),
    "late_after": DURATIONS,
    "after": st.sampled_from(["billing.close_month", "team-a/billing.sync:eu-1"]),
    "priority": st.integers(-100, 100).filter(bool),
    "memory_limit": st.sampled_from(["256MiB", "1GiB", "512MB", "1.5GiB"]),
    "cpu_limit": DURATIONS,
    "history": DURATIONS,
    "history_runs": st.integers(1, 1_000_000),
    "completes": st.just("consumed"),
}
missing = {field.name for field in FIELDS} ^ set(_POLICY_VALUES)
assert missing == set(), f"draw these here, too (or no longer): {missing}"


@st.composite
def policies(draw: st.DrawFn, schedule: str) -> Policy:
    """Some without a contradiction: what contradicts another is left out."""
    raw = draw(st.fixed_dictionaries({}, optional=_POLICY_VALUES))
    while raw:
        try:
            policy = read_policy(raw)
        except PolicyError as error:
            del raw[error.field]
            continue
        faults = policy_faults(policy, schedule)
        if not faults:
            return policy
        for field, _ in faults:
            raw.pop(field, None)
    return Policy()


def _generic(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    arguments = st.builds("{}[{}]".format, IDENTIFIERS, st.lists(inner, min_size=1, max_size=2).map(", ".join))
    return arguments | st.tuples(inner, inner).map(" | ".join)


TYPES = st.recursive(
    st.sampled_from(["Unit", "verb", "module", "int"]) | st.lists(IDENTIFIERS, min_size=1, max_size=3).map(".".join),
    _generic,
    max_leaves=4,
)


def _is_utf8(value: object) -> bool:
    try:
        canonical_json(value)
    except ValueError:
        return False
    return True


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
).filter(_is_utf8)


RECORD_NAMES = st.lists(IDENTIFIERS, min_size=1, max_size=2).map(".".join).filter(lambda name: name not in RESERVED)
FIELD_TYPES = st.sampled_from(["Thing", 'Literal["a", 1] | Thing', "list[Thing]", "dict[str, int]", "tuple[int, ...]"])
DATA_FIELDS = st.tuples(IDENTIFIERS, FIELD_TYPES, st.booleans()).map(lambda row: DataField(*row)) | st.tuples(
    IDENTIFIERS, st.just("Thing.unknown"), st.just(True), JSON_VALUES.map(canonical_json)
).map(lambda row: DataField(*row))
RECORDS = st.builds(
    DataType,
    RECORD_NAMES,
    st.lists(DATA_FIELDS, max_size=3, unique_by=lambda field: field.name).map(tuple),
    DOCS,
)


@st.composite
def verbs(draw: st.DrawFn) -> Verb:
    options: dict[str, Any] = {
        "name": draw(IDENTIFIERS),
        "timeout_ms": draw(st.none() | st.integers(1, DURATION_LIMIT_MS)),
        "on_disconnect": draw(st.sampled_from(["stop", "finish"])),
        "is_async": draw(st.booleans()),
        "doc": draw(DOCS),
    }
    if draw(st.booleans()):
        schedule = draw(SCHEDULES)
        options["policy"] = draw(policies(schedule))
        if is_interval(schedule):
            options["anchor"] = draw(st.just("") | WHOLE_INSTANTS)
        match draw(st.sampled_from(["", "", "payload", "optional", "null"])):
            case "payload":
                options |= {"request": "Thing.unknown", "payload": canonical_json(draw(JSON_VALUES))}
            case "optional":
                options |= {"request": draw(TYPES.filter(lambda text: text != "Unit")), "request_optional": True}
            case "null":
                options |= {"request": "int | None", "payload": "null"}
        return Verb(schedule=schedule, **options)
    return Verb(request=draw(TYPES), response=draw(TYPES), **options)


MODULES = st.builds(
    Module,
    name=IDENTIFIERS,
    verbs=st.lists(verbs(), max_size=4, unique_by=lambda verb: verb.name).map(tuple),
    namespace=NAMESPACES,
    doc=DOCS,
    types=st.lists(RECORDS, max_size=2, unique_by=lambda data: data.name).map(tuple),
)
