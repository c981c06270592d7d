"""What a node does in each step, in which order, and the reason for that order.

First the event goes to the part that it concerns (routing.py). Then every part has its turn, as time alone may have
brought it something to do. Follow-ups of the event, and of phases, wait for the phase whose `then` names their kind.
"""

from collections.abc import Callable
from typing import NamedTuple, assert_never

from cronring.controller.core.node.follow_ups import (
    Buried,
    ClaimInDoubt,
    DrillOver,
    FollowUp,
    FollowUps,
    Gone,
    RingChanged,
    RowNewer,
    RunnerAwaited,
    TickOverlooked,
    WindowAsked,
    Withdrawn,
)
from cronring.controller.core.node.parts import Parts


class Phase(NamedTuple):
    """One part's turn in a step. Behind it, all follow-ups so far of the kinds in `then` are acted on."""

    name: str
    act: Callable[[], FollowUps | None]
    then: tuple[type[FollowUp], ...] = ()


class Phases:
    """All of a node, in `order`."""

    __slots__ = ("_parts", "order")

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.order = self._in_order()

    def run(self, found: FollowUps) -> None:
        """Every phase once. `found`: by the event of this step."""
        waiting = list(found)
        for _, act, then in self.order:
            more = act()
            if more:
                waiting += more
            if then and waiting:
                waiting = self._follow_up(waiting, then)

    def _in_order(self) -> tuple[Phase, ...]:
        parts = self._parts
        return (
            # The renewal goes out first, as all else depends on it. And later phases see if the lease ran out.
            Phase("lease", parts.lease.act),
            # Who owns which slot decides what is due here: a ring of this step is the ring of all that follows.
            Phase("gossip", parts.membership.act, (RingChanged, Buried, Gone)),
            # Before claims: a drill that is over lets them go on in this very step.
            Phase("drill", parts.drill.act, (DrillOver,)),
            # Behind gossip, so that it reads the slots of now. Other reads of each minute go along with it.
            Phase("refetch", parts.refetching.act, (WindowAsked,)),
            # What has come due is in the first claim after that.
            Phase("due", self._offer_due),
            # A slot is looked over only while it is this controller's: behind gossip, too.
            Phase("backup looks", parts.looks.act),
            # What waits for a place has those that are free now, before the claims of this step look for one.
            Phase("called in", self._call_in),
            # Before claims: a tick is not claimed while an activation that was due before it is under way.
            Phase("activations", parts.activating.act),
            # Behind the phases that find out what is due.
            Phase("claims", self._claim),
            # Behind them: claims hand on to here what needs no runner.
            Phase("messages", parts.enqueuing.act),
            # Runners hear how much waits here once claims have taken what they could get.
            Phase("demands", parts.places.tell),
            # The order of these two makes no difference: one asks rows, the other tells runners what was answered.
            Phase("overlap", parts.overlap_cancel.act),
            Phase("cancels", parts.cancelling.act, (Withdrawn,)),
            # A grace that is over makes skips, as claims do; one statement writes them all.
            Phase("graces", parts.awaiting_runner.act),
            Phase("skips", parts.skipping.act),
            # Before ends: the consumers' reports that this asks for reach the ends in a later step.
            Phase("consumers", self._collect),
            # Behind claims: a delayed claim makes ticks late, while a result can wait. The follow-ups here ask for new
            # reads and looks. So they stand behind the reads of this step, which are older than the news and don't
            # answer it.
            Phase("ends", parts.ending.act, (ClaimInDoubt, RowNewer, RunnerAwaited, TickOverlooked)),
            # Behind what was found in doubt: its first adoption goes out at once.
            Phase("sweeps", parts.sweeping.act),
            # Anywhere behind gossip, which may say that this controller was held dead.
            Phase("verification", parts.verifying.act),
            # Last, so that it sees all that is under way.
            Phase("leaving", parts.leaving.act),
        )

    def _offer_due(self) -> None:
        parts = self._parts
        if parts.claiming.wants_more:
            parts.claiming.offer_all(parts.window.pop_primary(parts.context.now_us))

    def _call_in(self) -> None:
        self._parts.call_in(self._parts.places.call())

    def _claim(self) -> FollowUps:
        return self._parts.claiming.act(self._parts.activating.precedes)

    def _collect(self) -> None:
        if self._parts.collecting.looks:
            self._parts.collecting.look(self._parts.ending.consumed())

    def _follow_up(self, waiting: list[FollowUp], kinds: tuple[type[FollowUp], ...]) -> list[FollowUp]:
        """Act once on each follow-up of these kinds. Returns the others, which wait for their phases."""
        for each in dict.fromkeys(waiting):
            if isinstance(each, kinds):
                self._act_on(each)
        return [each for each in waiting if not isinstance(each, kinds)]

    def _act_on(self, each: FollowUp) -> None:  # noqa: C901  one branch for each kind
        parts = self._parts
        match each:
            case RingChanged():
                parts.take_duties()
                if parts.lease.answered:
                    parts.refetching.ask_soon()
            case Buried():
                parts.verifying.doubt()
            case Gone(controller_ids):
                parts.sweeping.adopt_from(controller_ids)
            case WindowAsked():
                parts.membership.search()
                parts.activating.ask_soon()
            case ClaimInDoubt():
                parts.sweeping.doubt()
                parts.refetching.ask_soon()
            case DrillOver() | RowNewer():
                parts.refetching.ask_soon()
            case RunnerAwaited():
                parts.refetching.ask_rarely()
            case Withdrawn(execution_id, reason):
                parts.ending.withdraw(execution_id, reason)
            case TickOverlooked(slot):
                parts.looks.ask_soon(slot)
            case _:
                assert_never(each)
