"""What counts, counted with."""

from cronring.protos.runner.v1 import runner_pb2 as wire
from tests.proxies.bounds import Bound, complaints
from tests.proxies.taps import PREFACE, Way, is_hello


def frame(kind: int, stream: int, payload: bytes, flags: int = 0) -> bytes:
    return len(payload).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + payload


def message(body: bytes) -> bytes:
    return b"\x00" + len(body).to_bytes(4) + body


def test_messages_are_found_however_the_bytes_are_cut() -> None:
    """Several in one frame, one in several, two streams in turn, padding, and frames that hold none."""
    split = message(b"split in two")
    padded = b"\x03" + message(b"padded") + b"\x00\x00\x00"
    sent = PREFACE + frame(4, 0, b"settings") + frame(0, 1, message(b"first") + message(b"second"))
    sent += frame(0, 1, split[:7]) + frame(0, 3, message(b"other")) + frame(0, 1, split[7:]) + frame(0, 5, padded, 0x8)
    for size in (1, 7, 30, len(sent)):
        way = Way()
        found = [each for at in range(0, len(sent), size) for each in way.messages(sent[at : at + size])]
        assert found == [b"first", b"second", b"other", b"split in two", b"padded"]
        assert way.from_client
    server = Way()
    assert server.messages(frame(0, 1, message(b"answer"))) == [b"answer"]
    assert server.from_client is False


def test_only_a_runner_begins_with_hello() -> None:
    hello = wire.RunnerMessage(hello=wire.Hello(runner_id="r1")).SerializeToString()
    assert is_hello(hello)
    assert not is_hello(wire.RunnerMessage(beat=wire.Beat(sequence=1)).SerializeToString())
    assert not is_hello(b"\xff\xff")


def test_what_is_above_missing_or_vanished_is_named() -> None:
    bounds = (Bound("calls", 100, 120, "here"), Bound("bytes", 40, 50, "there"), Bound("rows", 0, 0, "everywhere"))
    assert complaints(bounds, {"calls": 119.0, "bytes": 39.0, "rows": 0.0}) == []
    above, vanished, missing, unbound = complaints(bounds, {"calls": 130.0, "bytes": 0.0, "lines": 3.0})
    assert "calls is 130" in above
    assert "at most 120" in above
    assert "here" in above
    assert "mend the count" in vanished
    assert missing == "rows is not measured"
    assert unbound == "lines has no bound"
