"""What an execution may cost in things that don't depend on how fast the machine is.

`python -m tests.proxies` measures them and prints them beside their bounds; `make test` holds them. To tighten one
after an improvement, put what was measured here, the date, and a bound 20 % above. It is more where it goes by the
batch, as batches depend a little on how fast things are. To loosen one, say why in the commit.
"""

from typing import Final, NamedTuple

MEASURED_ON: Final = "2026-11-23"  # all below, with CPython 3.11


class Bound(NamedTuple):
    """`measured` when the bound was set; `at_most` from then on. `look`: where more of it would come from."""

    name: str
    measured: float
    at_most: float
    look: str


# A burst of 2,000 through cores and codecs alone (tests/proxies/cores.py): exact, but for the version of Python.
CORES: Final = (
    Bound(
        "core_claim_calls",
        83.1,
        100,
        "calls in a node from tick to dispatch: core/node/claiming.py, window.py, places.py",
    ),
    Bound("core_end_calls", 54.2, 65, "calls in a node from report to end: core/node/ending.py, ticks.py, holding.py"),
    Bound("core_all_calls", 139, 167, "all calls in the nodes' steps, backups' too: core/node/phases.py, routing.py"),
    Bound("runner_core_calls", 28, 34, "calls in runners' cores: cronring/runner/core/machine.py, places.py"),
    Bound("encode_runs_calls", 1.63, 2, "calls to encode a run: core/runs.py, protos/executions.py"),
    Bound("decode_runs_calls", 0.459, 0.6, "calls to decode a run: cronring/runner/codec.py"),
    Bound("encode_reports_calls", 3.06, 3.7, "calls to encode a report: cronring/runner/codec.py"),
    Bound("decode_reports_calls", 1.17, 1.5, "calls to decode a report: controller/runners/codec.py"),
    Bound("core_claims_per_1000", 4.5, 5.5, "claims of three controllers, the first ones small: core/node/claiming.py"),
    Bound("core_ends_per_1000", 6, 7.5, "ends of three controllers and two runners: core/node/ending.py"),
    Bound("core_to_runner_per_1000", 15, 18, "Dispatch, AckReports, SendDemands: core/notify/delivering.py, places.py"),
    Bound("core_from_runner_per_1000", 8, 10, "SendReports, SendGrants: cronring/runner/core/machine.py, shares.py"),
    Bound("dispatch_bytes", 28.9, 35, "of a run on the wire: encode_runs"),
    Bound("report_bytes", 34.1, 41, "of a report on the wire: report_messages"),
)
# The same burst, in memory: what steps hold at their worst instant, for each execution.
MEMORY: Final = (
    Bound("core_claim_peak_bytes", 786, 980, "allocated at once in a node's claims: core/node/claiming.py, places.py"),
    Bound("core_end_peak_bytes", 561, 700, "allocated at once in a node's ends: core/node/ending.py"),
    Bound("core_claim_blocks", 1.14, 1.5, "objects that a claim leaves until its end: core/node/holding.py, window.py"),
    # Tuples that the interpreter keeps for reuse are not counted: what ran before in the process moves this one.
    Bound("runner_core_peak_bytes", 177, 225, "allocated at once in a runner's core: cronring/runner/core/machine.py"),
)
# Three controllers and two runners, 2,000 jobs that are not due today: a second of one of them.
IDLE: Final = (
    Bound(
        "idle_statements_per_s",
        1.05,
        1.25,
        "RenewLease each second, FetchWindow each minute: core/node/lease.py",
    ),
    Bound("idle_node_wakes_per_s", 3.55, 4.5, "deadlines of a node: next_deadline() of lease, swim, refetch"),
    Bound("idle_node_steps_per_s", 10.8, 13, "events of a node: probes, beats of two runners, answers"),
    Bound("idle_runner_steps_per_s", 5, 6, "events of a runner: beats and their answers"),
)
# Packets of a member in each probe interval, of ten members and of a hundred.
MEMBERSHIP: Final = (
    Bound("swim_packets_10", 2.1, 2.5, "a ping and an ack, and a Sync now and then: core/swim/machine.py"),
    Bound("swim_packets_100", 2.1, 2.5, "as many as of ten"),
)
# 2,000 claims and ends in batches of 500 through PostgresStore, alone on PostgreSQL 18 (tests/proxies/books.py).
BOOKS: Final = (
    Bound("claim_buffers", 22.3, 27, "blocks that StartCronJobs touches for a row: its plan, indexes of both tables"),
    Bound("claim_wal_bytes", 818, 985, "WAL of a claim: a HOT update and an insert into cron_executions' indexes"),
    Bound("claim_rows_read", 3, 3.5, "rows that StartCronJobs fetches for one"),
    Bound("claim_rows_inserted", 1, 1, "the execution"),
    Bound("claim_rows_updated", 1, 1, "its job"),
    Bound("claim_rows_moved", 0, 0.1, "updates that are not HOT: an index on what a claim changes, or full pages"),
    Bound("end_buffers", 30.7, 37, "blocks that EndCronJob touches for a row: its plan, indexes of both tables"),
    Bound("end_wal_bytes", 899, 1_080, "WAL of an end: job and execution move, and are written into their indexes"),
    Bound(
        "end_rows_read",
        3,
        3.5,
        "rows that EndCronJob fetches for one: its execution to be asked, then both to be updated",
    ),
    Bound("end_rows_inserted", 0, 0, "a plain end writes no skip, no activation"),
    Bound("end_rows_updated", 2, 2, "the execution and its job"),
    Bound("end_rows_moved", 2, 2, "both: cron_jobs_due and cron_executions' partial index hold what it changes"),
    Bound("refetch_rows_per_due", 1, 1.1, "rows of cron_jobs that GetCronJobs reads: those due within the window only"),
    Bound("refetch_buffers_per_due", 0.85, 1.3, "blocks of cron_jobs that GetCronJobs touches"),
)
# 2,000 at once through two controllers, a runner and its child (tests/proxies/burst.py).
# What goes by the batch has more room.
BURST: Final = (
    Bound("claims_per_1000", 3, 6, "StartCronJobs, in batches of 500: core/node/claiming.py"),
    Bound("ends_per_1000", 3, 9, "EndCronJob, whatever has been reported meanwhile: core/node/ending.py"),
    Bound("other_statements_per_1000", 14, 30, "in the two seconds around: leases, webhooks, refetch, new connections"),
    Bound("commits_per_1000", 16, 35, "statements outside of transactions, and COMMITs"),
    Bound("messages_to_runner_per_1000", 6, 14, "dispatch, reports_ack, demands: controller/runners/streams.py"),
    Bound("messages_from_runner_per_1000", 4, 14, "reports, grants: cronring/runner/link.py"),
    Bound("bytes_to_runner", 31.3, 40, "of an execution on the wire: dispatch, acknowledgement"),
    Bound("bytes_from_runner", 34.1, 43, "of an execution on the wire: report"),
    Bound(
        "controller_calls",
        187,
        215,
        "calls on controllers' loops, asyncpg's too: `python -m tests.proxies --calls`",
    ),
    Bound("runner_calls", 53.9, 65, "calls on a runner's loop: `python -m tests.proxies --calls`"),
    Bound("child_calls", 38.3, 46, "calls on a child's loop, asyncio's too: `python -m tests.proxies --calls`"),
    Bound("lines_to_child_per_1000", 3, 7, "JSON lines: cronring/runner/children.py"),
    Bound("lines_from_child_per_1000", 3, 9, "JSON lines: cronring/child/serve_async.py"),
    Bound("writes_to_child_per_1000", 3, 9, "of the socket: cronring/runner/children.py"),
    Bound("reads_from_child_per_1000", 1.5, 12, "of the socket: cronring/runner/children.py"),
)


def complaints(bounds: tuple[Bound, ...], measured: dict[str, float]) -> list[str]:
    """What is above its bound, or isn't seen any more, in words."""
    found = []
    known = {bound.name for bound in bounds}
    for bound in bounds:
        if bound.name not in measured:
            found.append(f"{bound.name} is not measured")
            continue
        value = measured[bound.name]
        if value > bound.at_most:
            found.append(
                f"{bound.name} is {value:.4g}, at most {bound.at_most:g} is allowed "
                f"(it was {bound.measured:g} on {MEASURED_ON}): {bound.look}"
            )
        elif value < bound.measured / 20:
            found.append(
                f"{bound.name} is {value:.4g} and was {bound.measured:g}: if it is not counted any more "
                f"({bound.look}), mend the count; if it is that good, set its bound anew"
            )
    return found + [f"{name} has no bound" for name in measured if name not in known]
