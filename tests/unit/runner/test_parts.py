"""The small mechanisms: clock, deadlines, tail, suspicion, codec."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronring.runner.codec import report_messages
from cronring.runner.config import RunnerConfig
from cronring.runner.core.clock import DispatchClock
from cronring.runner.core.deadlines import Deadlines
from cronring.runner.core.settings import SECOND_NS, RunnerSettings
from cronring.runner.lines import Done, GarbageError, Row, read_line
from cronring.runner.suspicion import ChildProgress
from cronring.runner.tail import Tail
from cronring.schema.execution import Outcome, Report
from cronring.schema.recorded import KEEP_BYTES, read_recorded


def test_the_clock_trusts_the_quickest_message() -> None:
    clock = DispatchClock()
    for delay_us in (500, 20, 9_000):
        clock.sample(5_000_000 + 1_000_000, 0, (1_000_000 + delay_us) * 1_000)
    assert clock.offset_us == 5_000_000 - 20


def test_the_clock_tells_one_that_was_set_back_from_a_message_that_was_long_on_its_way() -> None:
    clock = DispatchClock()
    clock.sample(60_000_000, 0, SECOND_NS)
    assert clock.offset_us == 59_000_000
    # 20 s after, says a controller, by a message that it may have sent 14 s ago: so long it was on its way.
    clock.sample(66_000_000, 6 * SECOND_NS, 20 * SECOND_NS)
    assert clock.offset_us == 59_000_000
    # But this one it sent half a second ago, or later: its clock is 30 s less than it was.
    clock.sample(50_000_000, 20_500 * SECOND_NS // 1_000, 21 * SECOND_NS)
    assert clock.offset_us == 29_000_000
    clock.sample(90_000_000, 21 * SECOND_NS, 22 * SECOND_NS)  # and forward again
    assert clock.offset_us == 68_000_000


@given(st.dictionaries(st.integers(1, 50), st.integers(0, 10**9)), st.sets(st.integers(1, 50)), st.integers(0, 10**9))
def test_deadlines_agree_with_a_dumb_list(deadlines: dict[int, int], discarded: set[int], now_ns: int) -> None:
    kept = Deadlines()
    for execution_id, deadline_ns in deadlines.items():
        kept.add(execution_id, deadline_ns)
    for execution_id in discarded:
        kept.discard(execution_id)
    due = set(kept.due(now_ns))
    live = {i: d for i, d in deadlines.items() if i not in discarded}
    assert due <= {i for i, d in live.items() if d <= now_ns}  # never early
    assert due >= {i for i, d in live.items() if d <= now_ns - 10_000_000}  # at most a bucket late
    assert set(kept.due(10**10)) == live.keys() - due


@given(st.lists(st.text(st.characters(codec=None), max_size=50), max_size=30), st.integers(1, 4_000))
def test_a_tail_is_the_end_of_what_was_written(chunks: list[str], repeat: int) -> None:
    tail = Tail()
    for chunk in chunks:
        tail.write(chunk * repeat)
    whole = "".join(chunk * repeat for chunk in chunks).replace("\0", "\ufffd")
    expected = whole.encode("utf-8", "replace").decode()
    kept = tail.text()
    assert len(kept.encode()) <= KEEP_BYTES
    if len(expected.encode()) <= KEEP_BYTES:
        assert kept == expected
    else:
        begins_at, data = read_recorded(kept)
        assert kept.partition("\n")[0] == f"[… {begins_at} bytes of earlier output cut …]"
        assert expected.encode()[begins_at:] == data


@given(st.lists(st.text(max_size=40), min_size=1, max_size=20), st.integers(1, 3_000), st.integers(0, 200_000))
def test_what_a_tail_has_since_an_offset_goes_on_from_there(chunks: list[str], repeat: int, offset: int) -> None:
    tail = Tail()
    for chunk in chunks:
        tail.write(chunk * repeat)
    whole = "".join(chunk * repeat for chunk in chunks).replace("\0", "\ufffd").encode()
    begins_at, data = tail.since(offset)
    assert begins_at >= offset
    assert data == whole[begins_at:]
    assert begins_at == offset or len(data) > KEEP_BYTES - 4
    assert tail.end == len(whole)


def test_a_mark_says_when_more_was_dropped_on_the_way() -> None:
    tail = Tail()
    tail.write("a" * 10, cut=True)
    assert tail.text() == "[… earlier output cut …]\n" + "a" * 10
    assert read_recorded(tail.text()) == (0, b"a" * 10)
    tail.write("b" * 70_000)
    begins_at, data = read_recorded(tail.text())
    assert tail.text().startswith(f"[… more than {begins_at} bytes of earlier output cut …]")
    assert begins_at + len(data) == tail.end


def test_a_child_is_blocked_only_if_the_same_step_lasts() -> None:
    suspicion = ChildProgress()
    for tick in range(40):  # steps move on
        assert not suspicion.observe((3, tick, 0), os.getpid(), tick * 50_000_000)
    for tick in range(40):  # idle
        assert not suspicion.observe((0, 40, 0), os.getpid(), tick * 50_000_000)
    assert not suspicion.observe((3, 41, 0), os.getpid(), 0)
    assert not suspicion.observe((3, 41, 0), os.getpid(), 9 * SECOND_NS)  # the observer itself was away


def test_a_step_that_lasts_is_blocked_when_it_sleeps() -> None:
    suspicion = ChildProgress()
    no_such_pid = 2**22 + 1  # no /proc entry: taken for asleep
    seen = [suspicion.observe((3, 41, 0), no_such_pid, tick * 50_000_000) for tick in range(20)]
    assert seen.index(True) in {11, 12}


def test_reports_with_much_output_are_split_far_below_grpcs_limit() -> None:
    results = [Report(i, 1, 1, Outcome.FAILED, 1, 2, "E", "m", "é" * 32_000) for i in range(50)]
    messages = list(report_messages(results))
    assert len(messages) > 1
    assert all(message.ByteSize() < 3 << 20 for message in messages)
    assert [r.execution_id for m in messages for r in m.reports.reports] == list(range(50))


@pytest.mark.parametrize(
    ("values", "flag"),
    [
        ({"controllers": ()}, "--controllers"),
        ({"controllers": ("nowhere",)}, "--controllers"),
        ({"controllers": ("h:99999",)}, "--controllers"),
        ({"files": ()}, "FILE"),
        ({"sync_children": 0}, "--sync-children"),
        ({"drain_timeout": -1.0}, "--drain-timeout"),
        ({"controllers": ("h:1",)}, "--certs DIR or --join-token-file"),
        ({"insecure": False}, "give one of them"),
        ({"certs": Path("certs")}, "give one of them"),
        ({"insecure": False, "join_token_file": Path("token")}, "give it beside --join-token-file"),
    ],
)
def test_a_bad_configuration_names_its_flag(values: dict[str, object], flag: str) -> None:
    given_values: dict[str, object] = {
        "files": (Path("a.py"),),
        "controllers": ("127.0.0.1:1",),
        "insecure": True,
        **values,
    }
    with pytest.raises(ValueError, match=flag):
        RunnerConfig(**given_values)  # type: ignore[arg-type]  # wrong on purpose


def test_settings_hold_their_relations() -> None:
    with pytest.raises(ValueError, match="fence_ns"):
        RunnerSettings(fence_ns=4 * SECOND_NS)


PLAIN = [[1, 10, 20, 3], [2, 11, 21, 4]]


def test_plain_results_are_read_as_those_with_more_to_tell() -> None:
    told = [[3, 12, 22, 5, "completed", "", "", "", 60_000, "", []]]
    done, mixed = (read_line(json.dumps({"done": rows, "peak": 7}).encode()) for rows in (PLAIN, PLAIN + told))
    assert done == Done([Row(1, 10, 20, 3, None), Row(2, 11, 21, 4, None)], 7)
    assert isinstance(mixed, Done)
    assert (mixed.rows[:2], len(mixed.rows)) == (done.rows, 3)
    assert read_line(b'{"done":[],"peak":7}') == Done([], 7)


@pytest.mark.parametrize("wrong", [[3, 1, 2], [3, 1, 2, True], [3, 1, 2, 0.5], [3, 1, 2, -1], [1 << 62, 1, 2, 3], {}])
def test_one_wrong_result_among_plain_ones_is_garbage(wrong: object) -> None:
    with pytest.raises(GarbageError):
        read_line(json.dumps({"done": [*PLAIN, wrong], "peak": 7}).encode())
