import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from cronring import Context, cron, every, verb
from cronring.context import RunFacts
from cronring.declare import declarations


def test_a_decorated_function_stays_what_it_was() -> None:
    def refresh(ctx: Context) -> None: ...

    assert cron("0 6 1 * *", timeout="5m", on_disconnect="finish")(refresh) is refresh
    [declared] = [d for d in declarations(__name__) if d.function is refresh]
    assert (declared.name, declared.cron, declared.every) == ("refresh", "0 6 1 * *", None)
    assert (declared.timeout, declared.on_disconnect) == ("5m", "finish")
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


@pytest.mark.parametrize("wrong", [lambda: cron(5), lambda: every(lambda: None), lambda: verb("x"), verb])  # type: ignore[arg-type, type-var]
def test_a_misused_decorator_says_what_to_write(wrong: object) -> None:
    with pytest.raises(TypeError, match="write @"):
        wrong()  # type: ignore[operator]


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


def test_the_sdk_imports_the_standard_library_only() -> None:
    program = "import sys, cronring; print(*{n.partition('.')[0] for n in sys.modules} - set(sys.stdlib_module_names))"
    printed = subprocess.run([sys.executable, "-S", "-c", program], check=True, capture_output=True, text=True).stdout
    assert {name for name in printed.split() if not name.startswith("__")} == {"cronring"}
