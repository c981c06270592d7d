"""After a claim that was not won: when the same tick is tried again, if it still is the job's next tick."""

from typing import Final

from cronring.controller.core.model import ClaimRequest, ClaimResult, EnqueueRequest, EnqueueResult
from cronring.controller.core.node.context import NodeContext
from cronring.controller.core.node.window import DueWindow, Entry

EARLY_MARGIN_US: Final = 2_000  # added to the wait of a claim that came too early, as the clock is an estimate
CONTENDED_BASE_MS: Final = 50  # another controller is claiming the row, or the claim was refused without a reason
CONTENDED_CAP_MS: Final = 2_000
REFUSED_RETRY_US: Final = 30_000_000  # a job whose claim fails with an error of PostgreSQL, even alone in its statement


def put_off(
    context: NodeContext,
    window: DueWindow,
    entry: Entry,
    request: ClaimRequest | EnqueueRequest,
    result: ClaimResult | EnqueueResult,
) -> bool:
    """Set the entry's next try by the row. True: the row is newer than the window knows, or seems to be."""
    newer = result.revision != entry.job.revision
    same_tick = not result.executing and result.next_tick == request.expected_tick
    if not same_tick or result.next_run_at is None:
        entry.retries = 0
        window.reset(entry, result.executing, result.next_tick, result.next_run_at)
        return newer
    entry.run_at = result.next_run_at  # another policy may have put the same tick off
    now_us = context.now_us
    early_us = max(result.next_run_at, request.run_at) - result.claimed_at
    if early_us > 0:
        context.stats.claims_early += 1
        window.retry_at(entry, now_us + early_us + EARLY_MARGIN_US)
        return newer
    entry.retries += 1
    wait_ns = context.backoff_ns(entry.retries, CONTENDED_BASE_MS, CONTENDED_CAP_MS)
    window.retry_at(entry, now_us + wait_ns // 1_000)
    # Two tries in vain: no claim takes that long, so a deployment has probably moved the job on.
    return newer or entry.retries > 1
