"""First steps without a task: whatever a verb does in one, it is as if it had its task from the beginning on."""

import sys

import pytest

from cronring.runner.core.model import Outcome
from tests.integration.runner.conftest import OpenStage

pytestmark = pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="asyncio of that version only is helped along")

HEAD = """
import asyncio, contextvars
from asyncio import current_task
from cronring import Context, cron

mark = contextvars.ContextVar("mark", default="unset")
"""
VERBS = {
    "ask": """
    task = asyncio.current_task()
    print(task is current_task(asyncio.get_running_loop()), task in asyncio.all_tasks(), task.done(), task.cancelling())
    await asyncio.sleep(0)
    print(task is asyncio.current_task(), asyncio.tasks.current_task() in asyncio.tasks.all_tasks())
""",
    "ask_and_end": """
    task = asyncio.current_task()
    task.add_done_callback(lambda task: print("done", task.cancelled(), task.exception(), asyncio.current_task()))
""",
    "set_context": """
    print(mark.get())
    mark.set("set in the first step")
    await asyncio.sleep(0)
    print(mark.get(), await asyncio.create_task(look()))
""",
    "time_out": """
    try:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(60)
    except TimeoutError:
        print("timed out", asyncio.current_task().cancelling())
""",
    "group": """
    async with asyncio.TaskGroup() as group:
        looks = [group.create_task(look()) for _ in range(3)]
    print([each.result() for each in looks])
""",
    "group_fails": """
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
            await asyncio.sleep(60)
    except* ValueError as errors:
        print(errors.exceptions)
""",
    "cancel_itself": """
    inner = asyncio.create_task(asyncio.sleep(60))
    asyncio.current_task().cancel("by itself")
    try:
        await inner
    except asyncio.CancelledError as error:
        print("cancelled", error.args, inner.cancelled(), asyncio.current_task().cancelling())
    asyncio.current_task().uncancel()
""",
    "cancelled_by_another": """
    asyncio.get_running_loop().call_soon(asyncio.current_task().cancel)
    await asyncio.sleep(60)
""",
    "make_tasks": """
    other = asyncio.create_task(look())
    print(other in asyncio.all_tasks(), other is asyncio.current_task(), await other)
""",
    "await_done": """
    future = asyncio.get_running_loop().create_future()
    future.set_result(7)
    print(await future, await asyncio.wait_for(asyncio.sleep(0, 8), 1))
""",
    "in_a_thread": """
    print(await asyncio.to_thread(lambda: mark.get()))
    await asyncio.to_thread(print, "printed there")
""",
    "await_nonsense": """
    class Odd:
        def __await__(self):
            yield 7
    await Odd()
""",
    "raise_in_it": """
    raise KeyError("at once")
""",
}
FAILING = {"cancelled_by_another", "await_nonsense", "raise_in_it"}
PRINTED = {
    "ask": "True True False 0\nTrue True\n",
    "set_context": "unset\nset in the first step set in the first step\n",
    "time_out": "timed out 0\n",
    "group": "['unset', 'unset', 'unset']\n",
    "group_fails": "(ValueError('in a task'),)\n",
    "cancel_itself": "cancelled ('by itself',) True 1\n",
    "make_tasks": "True False unset\n",
    "await_done": "7 8\n",
    "in_a_thread": "unset\nprinted there\n",
}
FUNCTIONS = """
async def look():
    await asyncio.sleep(0)
    return mark.get()

async def fail():
    raise ValueError("in a task")
"""


def module() -> str:
    verbs = (f'\n@cron("* * * * *")\nasync def {name}(ctx: Context):{body}' for name, body in VERBS.items())
    return HEAD + "".join(verbs) + FUNCTIONS


@pytest.mark.parametrize("verb", list(VERBS))
async def test_a_first_run_is_as_those_that_begin_with_a_task(open_stage: OpenStage, verb: str) -> None:
    """Once a verb has needed a task, its runs begin with one."""
    stage = await open_stage(module())
    (first,) = await stage.ended(*stage.start(verb))
    (second,) = await stage.ended(*stage.start(verb))
    told = [(result.outcome, result.error_type, result.error_message, result.output) for result in (first, second)]
    assert told[0] == told[1]
    assert first.outcome is (Outcome.FAILED if verb in FAILING else Outcome.COMPLETED), first
    assert first.output == PRINTED.get(verb, "")


async def test_what_a_first_step_prints_and_sets_is_its_runs_alone(open_stage: OpenStage) -> None:
    stage = await open_stage(
        HEAD
        + """
@cron("* * * * *")
async def one(ctx: Context):
    print(ctx.execution_id, mark.get())
    mark.set("leaked")
"""
    )
    ids = stage.start(*["one"] * 5)
    results = await stage.ended(*ids)
    assert [result.output for result in results] == [f"{execution_id} unset\n" for execution_id in ids]


async def test_a_run_that_waits_since_its_first_step_can_be_stopped(open_stage: OpenStage) -> None:
    stage = await open_stage(
        HEAD
        + """
@cron("* * * * *")
async def one():
    print("begins")
    try:
        await asyncio.sleep(60)
    finally:
        print("cleans up")
"""
    )
    for _ in range(2):
        ids = stage.start("one", timeout_s=0.3)
        (result,) = await stage.ended(*ids)
        assert (result.outcome, result.output) == (Outcome.TIMED_OUT, "begins\ncleans up\n")
