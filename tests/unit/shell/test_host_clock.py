"""Whose clock is wrong is told, by how much, and not again and again."""

import pytest

from cronring.controller.core.node.effects import LogLine
from cronring.controller.runtime.host_clock import AGAIN_NS, OFF_US, HostClock
from cronring.controller.runtime.log import Log

T = 1_800_000_000_000_000
MINUTE_US = 60_000_000


class Host:
    """Its two clocks, and PostgreSQL's. `told`: events, with how far off."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ns = 0
        self.offset_us = 0
        self.known = True
        self.told: list[tuple[str, object]] = []
        monkeypatch.setattr(Log, "write", self._write)
        self.clock = HostClock(self, lambda now_ns: T + now_ns // 1_000 if self.known else 0)
        self._log = Log(self, self)

    def _write(self, line: LogLine) -> None:
        self.told.append((line.event, line.values.get("off")))

    def now_ns(self) -> int:
        return self.ns

    def wall_us(self) -> int:
        return T + self.ns // 1_000 + self.offset_us

    def logged(self, event: str, level: str) -> None:
        """Nobody counts."""

    def look(self, offset_us: int, after_ns: int = 5_000_000_000) -> list[tuple[str, object]]:
        """What is told of at that look."""
        self.ns += after_ns
        self.offset_us = offset_us
        before = len(self.told)
        self.clock.look(self._log)
        return self.told[before:]


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(monkeypatch)


@pytest.mark.parametrize("offset_us", [0, OFF_US, -OFF_US])
def test_what_ntp_leaves_is_nothing_to_speak_of(host: Host, offset_us: int) -> None:
    assert host.look(offset_us) == []
    assert host.clock.gauges() == {"host_clock_offset_seconds": offset_us / 1e6}


@pytest.mark.parametrize(
    ("offset_us", "off"),
    [(60 * MINUTE_US, "1h ahead of PostgreSQL's"), (-31_000_000, "31s behind PostgreSQL's")],
)
def test_one_that_is_wrong_is_told_once_an_hour_until_it_is_right(host: Host, offset_us: int, off: str) -> None:
    assert host.look(offset_us) == [("host_clock_off", off)]
    assert host.look(offset_us) == []
    assert host.look(offset_us, AGAIN_NS) == [("host_clock_off", off)]
    assert host.look(100) == [("host_clock_right_again", None)]
    assert host.look(100) == []
    assert host.look(offset_us) == [("host_clock_off", off)]


def test_nothing_is_known_before_postgresql_has_answered(host: Host) -> None:
    host.known = False
    assert host.look(60 * MINUTE_US) == []
    assert host.clock.gauges() == {}
