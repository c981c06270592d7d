"""A controller that is asked to stop: it claims nothing more, hands its slots over, ends what runs, and leaves then."""

from cronring.controller.core.node.activating import Activating
from cronring.controller.core.node.claiming import Claiming
from cronring.controller.core.node.context import NodeContext
from cronring.controller.core.node.effects import Leave, Level
from cronring.controller.core.node.ending import Ending
from cronring.controller.core.node.enqueuing import Enqueuing
from cronring.controller.core.node.follow_ups import NONE, FollowUps
from cronring.controller.core.node.holding import Holding
from cronring.controller.core.node.lease import Lease
from cronring.controller.core.node.membership import Membership
from cronring.controller.core.node.sweeping import Sweeping
from cronring.controller.core.node.verifying import Verifying


class Leaving:
    """From the order to stop to the last effect. `left`: the node has left, and its steps do nothing any more."""

    __slots__ = (
        "_activating",
        "_claiming",
        "_context",
        "_ending",
        "_enqueuing",
        "_holding",
        "_lease",
        "_membership",
        "_sweeping",
        "_verifying",
        "left",
    )

    def __init__(  # noqa: PLR0917  the parts that it waits for
        self,
        context: NodeContext,
        membership: Membership,
        lease: Lease,
        verifying: Verifying,
        holding: Holding,
        ending: Ending,
        claiming: Claiming,
        enqueuing: Enqueuing,
        activating: Activating,
        sweeping: Sweeping,
    ) -> None:
        self._context = context
        self._membership = membership
        self._lease = lease
        self._verifying = verifying
        self._holding = holding
        self._ending = ending
        self._claiming = claiming
        self._enqueuing = enqueuing
        self._activating = activating
        self._sweeping = sweeping
        self.left = False

    def drain(self) -> FollowUps:
        """Others get the slots at once; what is held is ended here."""
        context = self._context
        if context.draining:
            return NONE
        context.draining = True
        context.log(Level.INFO, "draining", held=len(self._holding.executions))
        found = self._membership.drain()
        self._lease.renew_soon()
        self._verifying.soon()
        return found

    def act(self) -> FollowUps:
        """Leave once nothing is left to do."""
        if self._context.draining and not self.left and self._is_done():
            return self.leave()
        return NONE

    def leave(self) -> FollowUps:
        """The last packets; whatever is still held is for others to adopt."""
        context = self._context
        context.log(Level.INFO, "leaving", held=len(self._holding.executions), ends_pending=len(self._ending))
        found = self._membership.leave()
        context.effects.append(Leave())
        self.left = True
        return found

    def _is_done(self) -> bool:
        claiming = not (self._claiming.idle and self._enqueuing.idle and self._activating.idle)
        # Executions that no runner has need no wait: the controller that adopts them hears of their ends.
        return not self._holding.on_runners and not len(self._ending) and not claiming and self._sweeping.idle
