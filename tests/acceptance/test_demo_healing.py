"""What `make demo` says of half a minute in which a controller is killed, as the README invites to."""

import os
import re
import signal
from pathlib import Path

from tests.acceptance.dev import DEMO, Dev, fields
from tests.acceptance.test_demo import is_run

LAST_LINE = re.compile(
    r"ticks due (\d+) \| executed (\d+) \| skipped (\d+)(?: \(([a-z_0-9, ]+)\))? \| unaccounted: (\d+)"
)


def is_completed(line: str) -> bool:
    return is_run(line) and " outcome=completed " in line


def test_for_a_while_with_a_controller_killed(folder: Path) -> None:
    with Dev([str(DEMO), "--for", "30s"], folder) as dev:  # a ring heals within eight, or more on a busy machine
        dev.wait_for(is_completed)
        victim = dev.wait_for(is_completed)
        name = fields(victim)["controller"]
        os.kill(dev.pid_of(name), signal.SIGKILL)
        dev.wait_for(lambda line: "process_ended" in line and f"name={name}" in line)
        healed = dev.wait_for(lambda line: " ring_healed " in line)
        dev.wait_for(is_completed)
        code = dev.finish()
        assert dev.wait_gone() == []
    assert float(fields(healed)["after_ms"]) > 0
    match = LAST_LINE.fullmatch(dev.lines[-1])
    assert match, dev.lines[-5:]
    due, executed, skipped = (int(match[group]) for group in (1, 2, 3))
    assert (code, match[5]) == (0, "0"), "\n".join(dev.lines)
    assert due == executed + skipped
    assert executed >= 10
    assert not list(folder.glob("cronring*")), "the temporary database is removed"
