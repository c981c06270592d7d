"""Random patterns and modules."""

from typing import Any

from hypothesis import strategies as st

from schema.duration import DURATION_LIMIT_MS
from schema.module import Module, Verb
from schema.pattern import CronPattern, PatternError
from schema.schedule import check_schedule

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
SCHEDULES = (PATTERNS | INTERVALS).map(check_schedule)


def _generic(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    arguments = st.builds("{}[{}]".format, IDENTIFIERS, st.lists(inner, min_size=1, max_size=2).map(", ".join))
    return arguments | st.tuples(inner, inner).map(" | ".join)


TYPES = st.recursive(
    st.sampled_from(["Unit", "verb", "module", "int"]) | st.lists(IDENTIFIERS, min_size=1, max_size=3).map(".".join),
    _generic,
    max_leaves=4,
)


@st.composite
def verbs(draw: st.DrawFn) -> Verb:
    options: dict[str, Any] = {
        "name": draw(IDENTIFIERS),
        "timeout_ms": draw(st.just(0) | st.integers(1, DURATION_LIMIT_MS)),
        "on_disconnect": draw(st.sampled_from(["stop", "finish"])),
        "is_async": draw(st.booleans()),
        "doc": draw(DOCS),
    }
    if draw(st.booleans()):
        return Verb(schedule=draw(SCHEDULES), **options)
    return Verb(request=draw(TYPES), response=draw(TYPES), **options)


MODULES = st.builds(
    Module,
    name=IDENTIFIERS,
    verbs=st.lists(verbs(), max_size=4, unique_by=lambda verb: verb.name).map(tuple),
    namespace=NAMESPACES,
    doc=DOCS,
)
