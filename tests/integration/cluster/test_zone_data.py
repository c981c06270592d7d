"""Controllers whose tzdata differs: whoever decides a tick does so by its own rules, and its row holds for everybody.

So ticks of that zone come by the one's rules or by the other's. But none comes twice, early or beside another, and
everything that differs is said: in the log, by the doctor, and by the audit.
"""

import asyncio
import time
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import asyncpg

from cronring.schema.zone import zone_data_version
from tests.support.cluster import Cluster
from tests.support.looking import look
from tests.support.waiting import until
from tests.support.zone_data import another_version

MODULE = Path(__file__).parent / "modules" / "zoned.py"
ODD = "2099.1"
ODD_S = 3600 + 2  # Berlin's clocks are two seconds ahead there, so ticks come two seconds sooner
SECONDS = 90.0


class Row(NamedTuple):
    verb: str
    overlap: str
    tick: float
    attempt: int
    run_at: float
    claimed: float
    started: float | None
    ended: float | None
    outcome: str | None

    @property
    def by_odd_rules(self) -> bool:
        return self.tick % 5 == 3


ROWS = (
    "SELECT j.verb, coalesce(nullif(j.policy, '')::json ->> 'overlap', 'skip'), extract(epoch FROM e.tick)::float8, "
    "e.attempt, extract(epoch FROM e.run_at)::float8, extract(epoch FROM e.claimed_at)::float8, "
    "extract(epoch FROM e.started_at)::float8, extract(epoch FROM e.ended_at)::float8, e.outcome "
    "FROM cron_executions e JOIN cron_jobs j ON j.id = e.job_id ORDER BY j.verb, e.tick, e.attempt"
)


def rows(cluster: Cluster) -> list[Row]:
    async def fetched() -> list[asyncpg.Record]:
        connection = await look(cluster.database_url)
        try:
            return list(await connection.fetch(ROWS))
        finally:
            await connection.close()

    return [Row(*row) for row in asyncio.run(fetched())]


def until_both_have_decided(cluster: Cluster) -> list[Row]:
    """Each of the two has ended runs of the zone's jobs, and other jobs went on."""

    def found() -> list[Row] | None:
        found = rows(cluster)
        zoned = [row for row in found if row.verb.startswith("a")]
        odd = [row for row in zoned if row.by_odd_rules]
        return found if len(odd) > 10 and len(zoned) - len(odd) > 10 else None

    return until(lambda: "\n".join(each.tail() for each in cluster.controllers), found, SECONDS)


def test_members_that_differ_lose_nothing_and_say_so(cluster: Cluster, tmp_path: Path) -> None:
    other = another_version(tmp_path / "odd", ODD, {"Europe/Berlin": ODD_S})
    cluster.migrate()
    cluster.start_controller()
    cluster.start_controller(wrapper=("env", f"PYTHONPATH={other}"))
    cluster.start_runner(MODULE)
    found = until_both_have_decided(cluster)

    names = [(row.verb, row.tick, row.attempt) for row in found]
    assert len(set(names)) == len(names)
    for row in found:
        assert row.claimed >= row.run_at >= row.tick, row
        if not row.verb.startswith("a"):
            assert row.tick % 5 == 0, row  # zones that don't differ, and UTC, know nothing of it
    for before, after in pairwise(found):
        if before.verb == after.verb and before.overlap != "allow":
            assert before.ended is not None, before
            assert after.claimed >= before.ended - 0.001, (before, after)

    own = zone_data_version()
    doctor = cluster.ask("doctor")
    assert "zone data" in doctor.stdout
    assert ODD in doctor.stdout
    assert own in doctor.stdout
    logs = "".join(each.log.read_text() for each in cluster.controllers)
    assert "zone_data_differs" in logs
    for verb in ("plain", "tokyo"):
        clean = cluster.ask("audit", "--job", f"zoned.{verb}")
        assert (clean.returncode, "tzdata" in clean.stdout) == (0, False), clean.stdout
    odd = cluster.ask("audit", "--thorough")
    assert odd.returncode == 1, odd.stdout
    assert f"controllers have decided ticks by {own} (since 20" in odd.stdout
    assert f"{ODD} (since 20" in odd.stdout
    assert "the books are right" in odd.stdout

    cluster.controllers[1].kill()
    killed = time.time()
    until(
        cluster.controllers[0].tail,
        lambda: [row for row in rows(cluster) if row.verb == "a1" and row.tick > killed + 10 and not row.by_odd_rules],
        SECONDS,
    )
    later = [row for row in rows(cluster) if row.tick > killed + 20]
    assert not [row for row in later if row.by_odd_rules], "whoever is left decides by its own rules"
