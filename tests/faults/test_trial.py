"""A trial tells what no row may do unseen, whoever runs it: a test, or `make fault`."""

import os
import signal
from pathlib import Path

from tests.faults.bounds import Bounds
from tests.faults.row import Row
from tests.faults.stage import Stage
from tests.faults.trial import play
from tests.support.server_faults import fetch_value, wait_until_it_answers


def _crash(stage: Stage) -> None:
    stage.on_time, stage.bounds = False, Bounds({})  # nothing is due
    url = stage.cluster.database_url
    checkpointer = fetch_value(url, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'")
    os.kill(checkpointer, signal.SIGSEGV)
    wait_until_it_answers(url)


def test_a_server_that_crashed_is_neither_safe_nor_fit_to_be_tried_again(tmp_path: Path) -> None:
    row = Row("crash", "a crash that no row means", "is seen", _crash, 1, 1, lambda: "")
    trial = play(row, 1, print, tmp_path)
    assert any("was terminated by signal 11" in line for line in trial.crashes)
    assert not trial.holds
    assert not trial.safe
    assert "PostgreSQL crashed: " in str(trial)
