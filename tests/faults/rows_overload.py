"""More due than there is room for."""

from typing import Final

from tests.faults.bounds import Bounds
from tests.faults.overload_load import JOBS, environment, overload
from tests.faults.row import row
from tests.faults.stage import Stage

WAITED_P99_S: Final = 0.15  # claimed, and waiting on a runner; the machine that tests run on is a busy one
USED: Final = 0.9  # of what there is room for
CLAIMED_MAX: Final = 8  # by all controllers together, for two children
GREW_MIB: Final = 24.0  # of one process, in the time from the end of its warm-up


@row(
    "overload", fault="three times as much due as the runners have room for",
    promise="not claimed rather than claimed and waiting; nothing grows without end; lateness is reported",
    short_s=20, long_s=3_600,
)  # fmt: skip
def overloaded(stage: Stage) -> None:
    """Nothing is ever on time here: what is due is late or passed over, and the books say which."""
    stage.environment |= environment(stage.journal)
    stage.bounds = Bounds({f"busy_{number:02}": 1 for number in range(JOBS)})
    figures = overload(stage.cluster, stage.seconds)
    stage.fault("overload", f"{figures.ticks_due} ticks due, room for {figures.room:.0f}")
    stage.on_time = False
    stage.excuse(stage.began_at, "overload", recovery_s=60)
    grew_mib = max(figures.grew_mib.values())
    stage.expect(figures.waited_p99_s <= WAITED_P99_S, f"claimed and waiting: p99 {figures.waited_p99_s} s")
    stage.expect(figures.used >= USED, f"only {figures.used:.0%} of what there was room for ran")
    stage.expect(grew_mib <= GREW_MIB, f"memory grew: {figures.grew_mib} MiB")
    stage.expect(figures.waiting_for_place > 0, "cronring_node_waiting_for_place tells nothing")
    stage.expect(figures.most_claimed_at_once <= CLAIMED_MAX, f"{figures.most_claimed_at_once} claimed at once")
    stage.expect(figures.jobs_that_ran == JOBS, f"of {JOBS} jobs only {figures.jobs_that_ran} had their turn")
    stage.measured["of the room used"] = f"{figures.used:.0%}"
    stage.measured["claimed and waiting"] = f"p99 {figures.waited_p99_s:.3f} s"
    stage.measured["late for want of a place"] = f"p50 {figures.late_p50_s:.2f} s, max {figures.late_max_s:.2f} s"
    stage.measured["memory grew"] = f"{grew_mib:.1f} MiB at most"
