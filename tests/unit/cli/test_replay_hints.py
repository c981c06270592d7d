"""What `cronring dev --speed` says of runs that hold it to real time, and of durations that a timeout cuts."""

from pathlib import Path

import pytest

from cronring.cli.dev.replay_drag import Drag, speed_text
from tests.unit.cli.conftest import Cronring


def test_short_runs_are_no_drag() -> None:
    drag = Drag()
    for _ in range(1_000):
        drag.note("quick", 0.01, 0.01)
    assert drag.news(3_600.0, 10.0) is None


def test_runs_that_take_most_of_the_time_are_told_once() -> None:
    drag = Drag()
    for tenth in range(30):
        drag.note("slow", tenth / 10, 0.1)
    drag.note("other", 0.6, 0.1)
    assert drag.news(30.0, 10.0) is None, "3 s of 10 are not most of it"
    news = drag.news(30.0, 5.0)
    assert news is not None
    assert (news["verb"], news["speed"]) == ("slow", "6x")
    assert "--duration slow=LENGTH" in news["hint"]
    assert drag.news(30.0, 5.0) is None


@pytest.mark.parametrize(
    ("virtual_s", "real_s", "text"), [(86_400, 2, "43,200x"), (3, 2, "1.5x"), (0, 0, "0x"), (99, 1, "99x")]
)
def test_the_speed_reached(virtual_s: float, real_s: float, text: str) -> None:
    assert speed_text(virtual_s, real_s) == text


MODULE = """
from cronring import every

@every("1h", jitter="off")
async def over() -> None: ...

@every("1h", jitter="off", timeout="10m")
async def own() -> None: ...

@every("1h", jitter="off", timeout="1h")
async def fits() -> None: ...
"""


def test_a_duration_beyond_the_timeout_is_told(cronring: Cronring, tmp_path: Path) -> None:
    file = tmp_path / "shop.py"
    file.write_text(MODULE)
    done = cronring("dev", str(file), "--speed", "max", "--for", "2h", "--duration", "over=25m", "--duration",
                    "own=20m", "--duration", "fits=30m")  # fmt: skip
    assert done.exit_code == 0, done.stderr
    over, own = done.stderr.splitlines()
    assert over.startswith("hint: --duration over=25m is longer than the default timeout, 5m, at which its runs end")
    assert 'write timeout="50m" at the verb' in over
    assert "own=20m is longer than its timeout, 10m" in own
    assert over in done.stdout
