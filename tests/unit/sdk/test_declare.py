import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from cronring import Context, VerbStopped, cron, declare, every, manual, once, verb
from cronring.context import RunFacts
from cronring.declare import IntervalOptions, Options, declarations
from cronring.schema.policy import FIELDS

SDK: Any = declare  # for what type checkers refuse


def test_a_decorated_function_stays_what_it_was() -> None:
    def refresh(ctx: Context) -> None: ...

    assert cron("0 6 1 * *", timeout="5m", on_disconnect="finish")(refresh) is refresh
    [declared] = [d for d in declarations(__name__) if d.function is refresh]
    assert (declared.name, declared.cron, declared.every) == ("refresh", "0 6 1 * *", None)
    assert declared.options == {"timeout": "5m", "on_disconnect": "finish"}
    assert declared.line == refresh.__code__.co_firstlineno


async def test_async_functions_too() -> None:
    @every("30m")
    async def poll() -> int:
        return 7

    @verb
    async def plain() -> int:
        return 8

    assert (await poll(), await plain()) == (7, 8)
    assert [d.every for d in declarations(__name__) if d.function is poll] == ["30m"]


def test_options_are_dumped_as_values_that_json_has() -> None:
    class Own(Exception): ...

    @every(
        "6h",
        timezone="Europe/Berlin",
        start_at=datetime(2026, 3, 1, 9),  # noqa: DTZ001  # in the job's zone
        end_at=datetime(2026, 3, 1, tzinfo=UTC),
        anchor=date(2026, 1, 1),
        window=["Mon 08:00-18:00", "Tue 09:00-10:00"],
        jitter=0.1,
        retries=3,
        retry_on=[ConnectionError, Own, "lost", VerbStopped],
        payload={"a": (1, None)},
        backoff=None,
    )
    def job(ctx: Context) -> None: ...

    [declared] = [d for d in declarations(__name__) if d.function is job]
    assert declared.options == {
        "timezone": "Europe/Berlin",
        "start_at": "2026-03-01T09:00:00",
        "end_at": "2026-03-01T00:00:00+00:00",
        "anchor": "2026-01-01",
        "window": "Mon 08:00-18:00, Tue 09:00-10:00",
        "jitter": 0.1,
        "retries": 3,
        "retry_on": ["ConnectionError", f"{__name__}.{Own.__qualname__}", "lost", "VerbStopped"],
        "payload": {"a": [1, None]},
    }


def test_kinds_of_jobs() -> None:
    @once("2026-03-01 09:00", timezone="Europe/Berlin")
    def one() -> None: ...

    @once(run_at=datetime(2026, 3, 1, 9, tzinfo=UTC))
    def two() -> None: ...

    @manual
    def three() -> None: ...

    @manual(timeout="5m")
    def four() -> None: ...

    found = {d.function: d for d in declarations(__name__)}
    assert (found[one].once, found[one].options) == ("2026-03-01 09:00", {"timezone": "Europe/Berlin"})
    assert found[two].once == "2026-03-01T09:00:00+00:00"
    assert (found[three].manual, found[three].options, found[three].line) == (True, {}, three.__code__.co_firstlineno)
    assert (found[four].manual, found[four].options) == (True, {"timeout": "5m"})


def test_the_decorators_take_every_policy_and_nothing_else() -> None:
    names = {field.name for field in FIELDS} - {"completes"}  # of queues' jobs, which nobody declares
    assert set(Options.__annotations__) == names | {"timeout", "on_disconnect", "payload"}
    # Read afresh, as the class is the one place where they stand.
    assert set(Options.__annotations__) == set(IntervalOptions.__annotations__) - {"anchor"}


@pytest.mark.parametrize(
    ("misused", "words"),
    [
        (lambda: SDK.cron("5m", timezon="UTC"), "@cron has no option 'timezon'; did you mean timezone?"),
        (lambda: SDK.every("5m", max_retries=3), "@every has no option 'max_retries'; did you mean retries?"),
        (lambda: SDK.cron("5m", retry=3), "@cron has no option 'retry'; did you mean retry_on or retries?"),
        (
            lambda: SDK.once("2026-01-01", xyz=3),
            "@once has no option 'xyz'; there are " + ", ".join(sorted(Options.__annotations__)[:3]),
        ),
        (lambda: SDK.cron("5m", anchor="2026-01-01"), "only the interval of @every counts from one"),
        (lambda: SDK.cron("5m", timeout=5), 'timeout="5m"'),
        (lambda: SDK.cron("5m", start_at=5), 'write start_at="2026-03-01 09:00"'),
        (lambda: SDK.once(5), 'write run_at="2026-03-01 09:00"'),
        (lambda: SDK.cron("5m", retry_on=[int]), "takes retry_on as exceptions or their names, not <class 'int'>"),
        (lambda: SDK.cron("5m", window={"Mon": 1}), "takes its window as text or a number"),
        (lambda: SDK.cron("5m", payload={1, 2}), "the payload must be a value that JSON has"),
        (lambda: SDK.cron("5m", payload=float("nan")), "the payload must be a value that JSON has"),
        (lambda: SDK.manual("5m"), "@manual takes options by name only"),
    ],
)
def test_what_no_decorator_takes(misused: Callable[[], object], words: str) -> None:
    with pytest.raises(TypeError, match=re.escape(words)):
        misused()


@pytest.mark.parametrize(
    "wrong", [lambda: SDK.cron(5), lambda: SDK.every(lambda: None), lambda: SDK.verb("x"), SDK.verb]
)
def test_a_misused_decorator_says_what_to_write(wrong: Callable[[], object]) -> None:
    with pytest.raises(TypeError, match="write @"):
        wrong()


def test_a_context_tells_instants_as_aware_datetimes() -> None:
    start = datetime(2026, 1, 1, 6, tzinfo=UTC)
    us = int(start.timestamp()) * 1_000_000
    context = Context(RunFacts(7, "billing.close", us, us + 1, us + 60_000_000, 2, "schedule", us + 1_501))
    assert (context.job, context.execution_id, context.attempt, context.trigger) == ("billing.close", 7, 2, "schedule")
    assert context.tick == start
    assert context.run_at == start + timedelta(microseconds=1)
    assert context.deadline == start + timedelta(minutes=1)
    assert context.lateness == timedelta(microseconds=1_500)
    assert context.log.name == "billing.close"
    assert "billing.close" in repr(context)


US = 1_767_247_200_000_000  # 2026-01-01T06:00:00Z
FACTS = RunFacts(7, "billing.close", US, US, US, 1, "schedule", US)


def test_a_context_tells_what_was_missed() -> None:
    plain = Context(FACTS)
    assert (plain.missed, plain.previous_tick, plain.previous_success, plain.payload) == (0, None, None, None)
    told = Context(
        FACTS._replace(missed=3, previous_tick_us=US - 10**6, previous_success_us=1, payload_json='{"a": [1]}')
    )
    assert told.missed == 3
    assert told.previous_tick == datetime(2026, 1, 1, 5, 59, 59, tzinfo=UTC)
    assert told.previous_success == datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC)
    assert told.payload == {"a": [1]}


def test_the_local_tick_has_the_zone_or_the_offset_that_the_cluster_says() -> None:
    assert (Context(FACTS).timezone, Context(FACTS).local_tick.tzinfo) == ("UTC", UTC)
    berlin = Context(FACTS._replace(timezone="Europe/Berlin", utc_offset_s=3600))
    assert berlin.timezone == "Europe/Berlin"
    assert berlin.local_tick == berlin.tick
    assert (berlin.local_tick.hour, berlin.local_tick.tzinfo) == (7, ZoneInfo("Europe/Berlin"))
    # This machine has other data than the cluster, or none for that name.
    older = Context(FACTS._replace(timezone="Europe/Berlin", utc_offset_s=7200)).local_tick
    assert (older.hour, older.tzinfo) == (8, timezone(timedelta(hours=2), "Europe/Berlin"))
    unknown = Context(FACTS._replace(timezone="Mars/Olympus", utc_offset_s=-5400)).local_tick
    assert (unknown.hour, unknown.minute, str(unknown.tzinfo)) == (4, 30, "Mars/Olympus")
    assert Context(FACTS._replace(timezone="Europe/Berlin")).local_tick.hour == 7
    with pytest.raises(LookupError):
        _ = Context(FACTS._replace(timezone="Mars/Olympus")).local_tick


@pytest.mark.parametrize(
    ("delay", "delay_ms"),
    [
        ("5m", 300_000),
        ("1h30m", 5_400_000),
        ("500ms", 500),
        ("36500d", 36_500 * 86_400_000),
        (timedelta(seconds=1.5), 1_500),
    ],
)
def test_an_interval_may_be_moved(delay: str | timedelta, delay_ms: int) -> None:
    moved: dict[int, int] = {}
    context = Context(FACTS._replace(interval=True), moved)
    context.next_in("1s")
    context.next_in(delay)
    assert moved == {7: delay_ms}


@pytest.mark.parametrize(
    "delay", ["", "5", "5 m", "m", "0s", "1m1h", "-5m", "36501d", "999999d", timedelta(0), timedelta(-1)]
)
def test_what_is_no_delay(delay: str | timedelta) -> None:
    with pytest.raises(ValueError, match="is no"):
        Context(FACTS._replace(interval=True)).next_in(delay)


def test_only_intervals_may_be_moved() -> None:
    with pytest.raises(RuntimeError, match="only jobs declared by @every may call"):
        Context(FACTS).next_in("5m")
    with pytest.raises(TypeError, match="text or a timedelta"):
        Context(FACTS._replace(interval=True)).next_in(300)  # type: ignore[arg-type]  # wrong on purpose


def test_the_sdk_imports_the_standard_library_only() -> None:
    program = "import sys, cronring; print(*{n.partition('.')[0] for n in sys.modules} - set(sys.stdlib_module_names))"
    printed = subprocess.run([sys.executable, "-S", "-c", program], check=True, capture_output=True, text=True).stdout
    assert {name for name in printed.split() if not name.startswith("__")} == {"cronring"}


def test_the_line_of_a_decorator_is_looked_up_only_where_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python walks through the table of the whole module for it: asked for each verb, imports would be quadratic."""
    looked_up: list[Any] = []

    def line(caller: Any) -> int:
        looked_up.append(caller)
        return 0

    monkeypatch.setattr(SDK._Caller, "line", property(line))

    @cron("0 6 1 * *")
    @every("30m")
    @manual
    def refresh() -> None: ...

    assert [d.line for d in declarations(__name__) if d.function is refresh] == [refresh.__code__.co_firstlineno] * 3
    assert not looked_up


def test_what_another_modules_decorator_returned_has_the_line_of_ours() -> None:
    def elsewhere() -> None: ...

    elsewhere.__module__ = "somebodys.library"
    # fmt: off
    cron(
        "0 6 1 * *",
    )(elsewhere)
    # fmt: on
    first = sys._getframe().f_lineno - 4
    [declared] = [d for d in declarations(__name__) if d.function is elsewhere]
    assert declared.line == first
