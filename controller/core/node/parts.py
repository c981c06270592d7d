"""The parts of a node, and which parts know which others. Each part's module says what it does."""

from typing import Protocol

from cronring.controller.core.node.activating import Activating
from cronring.controller.core.node.awaiting_runner import AwaitingRunner
from cronring.controller.core.node.cancelling import Cancelling
from cronring.controller.core.node.claiming import Claiming
from cronring.controller.core.node.collecting import Collecting
from cronring.controller.core.node.connected_runners import ConnectedRunners
from cronring.controller.core.node.context import NodeContext
from cronring.controller.core.node.drill import NodeDrill
from cronring.controller.core.node.ending import Ending
from cronring.controller.core.node.enqueuing import Enqueuing
from cronring.controller.core.node.holding import Holding
from cronring.controller.core.node.lease import Lease
from cronring.controller.core.node.leaving import Leaving
from cronring.controller.core.node.limiting import Limiting
from cronring.controller.core.node.membership import Membership
from cronring.controller.core.node.overlap_cancel import OverlapCancel
from cronring.controller.core.node.places import Item, Places
from cronring.controller.core.node.refetch import BackupLooks, Refetching
from cronring.controller.core.node.skipping import Skipping
from cronring.controller.core.node.sweeping import Sweeping
from cronring.controller.core.node.unread import Unread
from cronring.controller.core.node.verifying import Verifying
from cronring.controller.core.node.window import DueWindow, Entry


class Timed(Protocol):
    """A part that wants to act at an instant of the monotonic clock."""

    def next_deadline(self) -> int | None: ...


class Parts:
    """Each part is made after the parts that it knows. So no two parts know each other."""

    def __init__(self, context: NodeContext, address: str) -> None:
        self.context = context
        self._decide(context)
        self._start(context)
        self._end(context)
        self.membership = Membership(context, address)
        self.drill = NodeDrill(context, self.lease, self.membership)
        self.leaving = Leaving(
            context,
            self.membership,
            self.lease,
            self.verifying,
            self.holding,
            self.ending,
            self.claiming,
            self.enqueuing,
            self.activating,
            self.sweeping,
        )
        self._timed: tuple[Timed, ...] = (
            self.lease,
            self.membership,
            self.refetching,
            self.looks,
            self.claiming,
            self.enqueuing,
            self.limiting,
            self.activating,
            self.collecting,
            self.ending,
            self.sweeping,
            self.verifying,
            self.places,
            self.drill,
        )
        self.take_duties()

    def _decide(self, context: NodeContext) -> None:
        """May I claim, what is due soon, and who runs it?"""
        self.runners = ConnectedRunners()
        self.cancelling = Cancelling(context, self.runners)
        self.lease = Lease(context, self.cancelling)
        self.unread = Unread(context)
        self.window = DueWindow(context)
        self.refetching = Refetching(context, self.window, self.lease)
        self.looks = BackupLooks(context, self.window)
        self.overlap_cancel = OverlapCancel(context, self.lease, self.cancelling)
        self.holding = Holding(context, self.lease, self.runners, self.overlap_cancel, self.cancelling)

    def _start(self, context: NodeContext) -> None:
        """What starts what is due, or lets it wait, or passes over it."""
        window, lease, runners = self.window, self.lease, self.runners
        self.skipping = Skipping(context, window, lease)
        self.awaiting_runner = AwaitingRunner(context, window, lease, self.skipping)
        self.limiting = Limiting(context, window, lease)
        self.places = Places(context, window, lease, runners)
        self.collecting = Collecting(context)
        self.activating = Activating(context, window, lease, runners, self.holding, self.places, self.collecting)
        self.enqueuing = Enqueuing(
            context, window, lease, self.skipping, self.holding, self.activating, self.collecting
        )
        self.claiming = Claiming(
            context,
            window,
            lease,
            runners,
            self.holding,
            self.awaiting_runner,
            self.skipping,
            self.limiting,
            self.places,
            self.enqueuing,
            self.collecting,
        )

    def _end(self, context: NodeContext) -> None:
        """What ends executions, also those that other controllers started."""
        window, lease, runners, holding = self.window, self.lease, self.runners, self.holding
        self.ending = Ending(context, window, holding, self.activating, self.unread, self.collecting)
        self.sweeping = Sweeping(context, window, lease, runners, holding, self.ending)
        self.verifying = Verifying(context, window, lease, runners, holding)

    def take_duties(self) -> None:
        """The window follows the slots' duties in the ring from now on."""
        self.window.set_duties(self.membership.duties(), self.membership.ring.primary)
        self.places.duties_changed()

    def call_in(self, items: list[Item]) -> None:
        """What waited for a place goes on to its claim."""
        for item in items:
            if isinstance(item, Entry):
                self.claiming.called(item)
            else:
                self.activating.called(item)

    def next_deadline(self) -> int:
        """When the first of them wants its turn, on the monotonic clock in ns."""
        reaches_at_ns = self.context.clock.reaches_at_ns
        deadlines = [reaches_at_ns(instant) for instant in self.due_us() if instant is not None]
        for part in self._timed:
            deadline = part.next_deadline()
            if deadline is not None:
                deadlines.append(deadline)
        return min(deadlines)

    def due_us(self) -> tuple[int | None, ...]:
        """The next instant of each part, by PostgreSQL's clock."""
        return (
            self.window.next_us(only_backup=not self.claiming.wants_more),
            self.awaiting_runner.next_us(),
            self.activating.next_us(),
            self.overlap_cancel.next_us(),
            self.cancelling.next_us(),
        )
