"""The rows of rows_patroni.py: even the short forms take minutes."""

import os
import signal

import pytest

from tests.faults.trying import long
from tests.support.patroni import Patroni
from tests.support.server_faults import fetch_value, wait_until_it_answers
from tests.support.server_logs import LOGS

test_long = long("patroni")


@pytest.mark.soak
@pytest.mark.skipif(bool(Patroni.missing()), reason=f"needs Debian's {Patroni.missing()}")
def test_a_crash_under_patroni_is_seen_and_a_kill_is_none() -> None:
    with Patroni() as members:
        members.start()
        victim = members.leader()
        members.kill(victim)
        members.wait_for_other_leader(victim)
        members.start_member(victim)
        members.wait_for_all()
        wait_until_it_answers(members.url())
        assert LOGS.crashes() == []
        checkpointer = fetch_value(
            members.url(), "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'"
        )
        os.kill(checkpointer, signal.SIGSEGV)
        wait_until_it_answers(members.url())
        assert any("was terminated by signal 11" in line for line in LOGS.crashes())
