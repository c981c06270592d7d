"""Who came and who went, in the log: over real streams, with the gateway's own reasons."""

from cronring.controller.core.node.events import RunnerBeat
from cronring.protos.runner.v1 import runner_pb2 as wire
from tests.support.fake_runner import hello
from tests.support.waiting import wait_until
from tests.unit.shell import test_gateway
from tests.unit.shell.test_gateway import World

doors = test_gateway.world


async def test_one_line_at_the_beginning_and_one_at_the_end(doors: World) -> None:
    for runner_id, draining in ("drained", True), ("killed", False):
        runner = await doors.connect(hello(runner_id))
        await runner.hear()
        ((level, event, values),) = doors.log.of(runner_id)
        assert (level, event) == ("info", "runner_connected")
        assert values["host"]
        assert values["address"].startswith("ipv4:127.0.0.1:")
        assert values["modules"].startswith("billing@")
        await runner.say(beat=wire.Beat(sequence=1, renew=True, draining=draining))
        await wait_until(lambda: isinstance(doors.inbox.events[-1], RunnerBeat), "no beat came")
        await runner.close()
        await wait_until(lambda: len(doors.log.of(runner_id)) == 2, "its end is not told")  # noqa: B023 - waited for here
    assert [line[:2] for line in doors.log.of("drained")] == [
        ("info", "runner_connected"),
        ("info", "runner_disconnected"),
    ]
    assert "drained" in doors.log.of("drained")[1][2]["reason"]
    assert [line[:2] for line in doors.log.of("killed")] == [("info", "runner_connected"), ("warning", "runner_gone")]
    assert "broke" in doors.log.of("killed")[1][2]["reason"]


async def test_a_second_stream_and_a_controller_that_leaves_are_nobodys_fault(doors: World) -> None:
    first = await doors.connect(hello("twice"))
    await first.hear()
    second = await doors.connect(hello("twice"))
    await second.hear()
    await wait_until(lambda: len(doors.log.of("twice")) == 3, "the end of the first is not told")
    doors.streams.close_all("this controller is leaving")
    await wait_until(lambda: len(doors.log.of("twice")) == 4, "the end of the second is not told")
    ends = [line for line in doors.log.of("twice") if line[1] != "runner_connected"]
    assert [line[:2] for line in ends] == [("info", "runner_disconnected")] * 2
    assert [line[2]["reason"] for line in ends] == [
        "the same runner opened another stream", "this controller is leaving",
    ]  # fmt: skip


async def test_one_that_falls_silent_is_cut_off(doors: World) -> None:
    runner = await doors.connect(hello("silent"))
    await runner.hear()
    doors.streams.close_silent(test_gateway.now_us() + 6_000_000, 5_000_000)
    await wait_until(lambda: len(doors.log.of("silent")) == 2, "its end is not told")
    assert doors.log.of("silent")[1][:2] == ("warning", "runner_cut_off")
    assert "no beat for 5s" in doors.log.of("silent")[1][2]["reason"]


async def test_what_says_no_more_than_hello_has_neither_come_nor_gone(doors: World) -> None:
    doors.store.away = True
    runner = await doors.connect(hello("early"))
    await wait_until(lambda: "early" in doors.streams.runner_ids, "no stream")
    await runner.close()
    await wait_until(lambda: not len(doors.streams), "the stream stays")
    assert doors.log.of("early") == []


async def test_a_module_that_is_refused_is_said_to_be(doors: World) -> None:
    wrong = hello("wrong")
    wrong.modules[0].digest = "none"
    runner = await doors.connect(wrong)
    await runner.hear()
    assert doors.log.of("wrong")[0][2]["modules"] == "billing (refused)"
