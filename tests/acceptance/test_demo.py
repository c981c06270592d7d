"""What `make demo` runs, in real processes. A controller is killed in test_demo_healing.py; more: test_dev_life.py."""

from pathlib import Path

from tests.acceptance.dev import DEMO, Dev


def is_run(line: str) -> bool:
    return " execution " in line


def test_ctrl_c_ends_everything_within_seconds(folder: Path) -> None:
    with Dev([str(DEMO), "--for", "5m"], folder) as dev:
        dev.wait_for(is_run)
        dev.interrupt()
        code = dev.finish()
        assert dev.wait_gone() == []
    assert code == 0
    assert dev.errors.read_text() == ""


def test_killed_itself_it_leaves_nobody_behind(folder: Path) -> None:
    with Dev([str(DEMO)], folder) as dev:
        dev.wait_for(is_run)
        assert len(dev.living()) >= 6
        dev.popen.kill()
        assert dev.wait_gone() == []
    assert not list(folder.glob("cronring*"))
