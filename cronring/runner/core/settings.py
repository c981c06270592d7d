"""The durations that the runner's rules rest on, in nanoseconds of its monotonic clock."""

from dataclasses import dataclass, replace

SECOND_NS = 1_000_000_000
MS_NS = 1_000_000


@dataclass(frozen=True, slots=True)
class RunnerSettings:
    """Its beat and fence are valid until a controller names the cluster's. Raises ValueError for a broken relation.

    `fence_ns` must lie below the controllers' `runner_lost_after` (8.75 s) by what it takes to kill a run.
    """

    beat_ns: int = SECOND_NS
    fence_ns: int = 8 * SECOND_NS
    renewal_patience_ns: int = 2_500_000_000  # without a renewal for this long, another controller is asked
    ack_patience_ns: int = 10 * SECOND_NS  # a result that isn't acknowledged is offered again
    drain_ns: int = 30 * SECOND_NS
    review_ns: int = SECOND_NS  # how often the runner looks for such results, and for controllers that are gone
    farewell_ns: int = 5 * SECOND_NS  # after the last run has ended: how long to wait for acknowledgements
    take_over_ns: int = 20 * SECOND_NS  # for so long each renewing beat names a controller that is out of reach
    gone_again_ns: int = 250 * MS_NS  # if nobody listens at its address, it is named a second time so soon
    take_over_again_ns: int = 5 * SECOND_NS  # after `take_over_ns`: named once in so long
    forget_peer_ns: int = 60 * SECOND_NS  # a controller that no list names and no stream reaches is dropped

    def __post_init__(self) -> None:
        if not 0 < self.beat_ns * 2 <= self.renewal_patience_ns < self.fence_ns // 2:
            raise ValueError("2 x beat_ns <= renewal_patience_ns < fence_ns / 2 must hold")

    def agreed(self, beat_ms: int, fence_ms: int) -> "RunnerSettings":
        """With the cluster's durations, which must be equal everywhere.

        Raises ValueError when they contradict each other.
        """
        beat_ns = beat_ms * MS_NS
        return replace(self, beat_ns=beat_ns, renewal_patience_ns=beat_ns * 5 // 2, fence_ns=fence_ms * MS_NS)
