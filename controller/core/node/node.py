"""One whole controller without I/O.

    node = Node("c-1", "10.0.0.1:7000", ClusterSettings(), random.Random(7), now_ns)
    effects = node.step(Woke(), now_ns)        # the initial ones
    effects = node.step(event, now_ns)         # whatever happens, one at a time
    deadline_ns = node.next_deadline()         # step(Woke(), now) is wanted then

The driver performs the effects; the answers come back as events under the effect's request id, each exactly once.
Times are nanoseconds of one monotonic clock, and never go back. The parts of a node: `lease` (may I claim?),
`membership` (who else is there, which slots are mine?), `window` and `refetch` (what is due soon?), `claiming`,
`places`, `limiting`, `awaiting_runner` and `skipping` (start it, or not), `activating` (start what no schedule asks
for), `cancelling` and `overlap_cancel` (stop it, for somebody or for the next), `sessions` and `holding` (where does it
run?), `ending` (it ended), `verifying` (or did it?), `sweeping` (what nobody ends), `drill` (nothing of all that, for a
drill).
"""

from dataclasses import replace
from typing import Final, assert_never

from cronring.controller.core.chance import Chance
from cronring.controller.core.node import events
from cronring.controller.core.node.activating import Activating
from cronring.controller.core.node.activation import WaitingActivation
from cronring.controller.core.node.awaiting_runner import AwaitingRunner
from cronring.controller.core.node.cancelling import Cancelling
from cronring.controller.core.node.claiming import Claiming
from cronring.controller.core.node.context import MS, Asker, NodeContext
from cronring.controller.core.node.drill import DrillEnd, StandingDown, StoodDown
from cronring.controller.core.node.effects import Effect, Leave, Level
from cronring.controller.core.node.ending import Ending
from cronring.controller.core.node.events import Event
from cronring.controller.core.node.holding import Holding
from cronring.controller.core.node.lease import Lease
from cronring.controller.core.node.limiting import Limiting
from cronring.controller.core.node.membership import Membership
from cronring.controller.core.node.overlap_cancel import OverlapCancel
from cronring.controller.core.node.pgclock import DatabaseClock
from cronring.controller.core.node.places import Places
from cronring.controller.core.node.refetch import BackupLooks, Refetching
from cronring.controller.core.node.ring import Ring
from cronring.controller.core.node.sessions import Sessions
from cronring.controller.core.node.skipping import Skipping
from cronring.controller.core.node.stats import Stats
from cronring.controller.core.node.sweeping import Sweeping
from cronring.controller.core.node.verifying import Verifying
from cronring.controller.core.node.window import DueWindow, Entry
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.core.swim.member import Member

FIRST_FETCH_DELAY_NS: Final = 1_000 * MS  # at most; sooner when the peers are known, or that there are none


class Node:
    """See the module. Everything but `step` only looks."""

    def __init__(
        self, controller_id: str, address: str, settings: ClusterSettings, chance: Chance, now_ns: int
    ) -> None:
        self._context = NodeContext(controller_id, settings, chance, now_ns)
        self._started = False
        self._left = False
        self._sessions = Sessions()
        self._cancelling = Cancelling(self._context, self._sessions)
        self._lease = Lease(self._context, self._cancelling)
        self._window = DueWindow(self._context)
        self._overlap_cancel = OverlapCancel(self._context, self._lease, self._cancelling)
        self._holding = Holding(self._context, self._lease, self._sessions, self._overlap_cancel, self._cancelling)
        self._skipping = Skipping(self._context, self._window, self._lease)
        self._awaiting_runner = AwaitingRunner(self._context, self._window, self._lease, self._skipping)
        self._limiting = Limiting(self._context, self._window, self._lease)
        self._places = Places(self._context, self._window, self._lease, self._sessions)
        self._claiming = Claiming(
            self._context,
            self._window,
            self._lease,
            self._sessions,
            self._holding,
            self._awaiting_runner,
            self._skipping,
            self._limiting,
            self._places,
        )
        self._activating = Activating(
            self._context, self._window, self._lease, self._sessions, self._holding, self._places
        )
        self._ending = Ending(self._context, self._window, self._holding, self._activating)
        self._refetching = Refetching(self._context, self._window, self._lease)
        self._looks = BackupLooks(self._context, self._window)
        self._sweeping = Sweeping(self._context, self._window, self._lease, self._sessions, self._holding, self._ending)
        self._verifying = Verifying(self._context, self._window, self._lease, self._sessions, self._holding)
        self._membership = Membership(self._context, address)
        self._standing_down = StandingDown(self._context, self._lease, self._membership)

    def step(self, event: Event, now_ns: int) -> list[Effect]:
        """Take one event into account. The effects are to be performed in order."""
        context = self._context
        context.now_ns = max(now_ns, context.now_ns)
        effects: list[Effect] = []
        context.effects = effects
        if self._left:
            return effects
        self._handle(event)
        self._turn()
        return effects

    def next_deadline(self) -> int | None:
        """When to step(Woke()) at the latest, on the monotonic clock in ns; None: only events matter."""
        if self._left:
            return None
        clock = self._context.clock
        deadlines = [clock.reaches_at_ns(instant) for instant in self._due_us() if instant is not None]
        for part in (
            self._lease,
            self._membership,
            self._refetching,
            self._looks,
            self._claiming,
            self._limiting,
            self._activating,
            self._ending,
            self._sweeping,
            self._verifying,
            self._places,
            self._standing_down,
        ):
            deadline = part.next_deadline()
            if deadline is not None:
                deadlines.append(deadline)
        return min(deadlines)

    def _due_us(self) -> tuple[int | None, ...]:
        """What PostgreSQL's clock calls for next."""
        return (
            self._window.next_us(only_backup=not self._claiming.wants_more),
            self._awaiting_runner.next_us(),
            self._activating.next_us(),
            self._overlap_cancel.next_us(),
            self._cancelling.next_us(),
        )

    def members(self) -> list[Member]:
        """Every controller this one has heard of: id, address, status, incarnation."""
        return list(self._membership.swim.members())

    @property
    def peers(self) -> tuple[tuple[str, str], ...]:
        """(id, address) of every controller that may hold a lease, as far as this one knows."""
        return self._context.peers

    @property
    def ring(self) -> Ring:
        return self._membership.ring

    @property
    def clock(self) -> DatabaseClock:
        return self._context.clock

    @property
    def draining(self) -> bool:
        return self._context.draining

    @property
    def lease_valid(self) -> bool:
        """As of the latest step."""
        return self._lease.valid

    @property
    def standing_down(self) -> bool:
        """It claims nothing for a while, for a drill."""
        return self._context.standing_down

    @property
    def stood_down(self) -> StoodDown | None:
        """The drill that lasts, or the latest one; None: there was none."""
        return self._standing_down.latest

    def why_not_stand_down(self, forced: bool) -> str | None:
        """As of the latest step; None: nothing speaks against it."""
        return self._standing_down.why_not(forced)

    @property
    def lease_since_ns(self) -> int | None:
        """Since when it has been valid without a gap; None while it isn't."""
        return self._lease.held_since_ns

    @property
    def lease_until_ns(self) -> int:
        """Its end, by the monotonic clock and with the margin."""
        return self._lease.valid_until_ns

    @property
    def health(self) -> int:
        """0: well; up to 8: it seems to be slow itself (Lifeguard's local health)."""
        return self._membership.swim.health

    def database_now(self, now_ns: int) -> int:
        """PostgreSQL's time in us, as estimated; 0 before its first answer."""
        clock = self._context.clock
        return clock.now_us(now_ns) if clock.known else 0

    def stats(self) -> Stats:
        """A copy of the counters, with the gauges as of now."""
        return replace(
            self._context.stats,
            window_jobs=len(self._window.entries),
            held=len(self._holding.executions),
            ends_pending=len(self._ending),
            parked=len(self._awaiting_runner),
            activations=len(self._activating),
            runners=len(self._sessions.by_id),
            waiting_for_place=len(self._places),
        )

    def _handle(self, event: Event) -> None:  # noqa: C901  one branch for each kind of event
        match event:
            case events.Woke():
                pass
            case events.PacketReceived() | events.PeerRefused() | events.PeersFound() | events.SeedsNamed():
                self._from_peers(event)
            case events.JobsNotified() | events.CancelsNotified() | events.PlacesFreed():
                self._notified(event)
            case events.JobsCreated(jobs):
                self._window.add_own(jobs)
            case events.ActivationsCreated(activations):
                self._activating.created(activations)
            case events.CancelsAsked(cancels):
                self._cancelling.asked(cancels, self._holding.executions)
            case (
                events.RunnerJoined()
                | events.RunnerLeft()
                | events.RunnerBeat()
                | events.ReportsReceived()
                | events.PlacesGranted()
                | events.RunsDeclined()
            ):
                self._from_runner(event)
            case events.DrainRequested():
                self._drain()
            case events.DrainExpired():
                self._leave()
            case events.StandDownRequested() | events.StandDownReleased():
                self._drill(event)
            case events.StoreFailed():
                self._store_failed(event)
            case _:
                self._from_store(event)

    def _notified(self, event: events.JobsNotified | events.CancelsNotified | events.PlacesFreed) -> None:
        match event:
            case events.JobsNotified():
                self._refetching.wish()
            case events.CancelsNotified():
                self._lease.ask_soon()
            case events.PlacesFreed():
                self._limiting.places_freed()
                self._activating.places_freed()
            case _:
                assert_never(event)

    def _from_runner(
        self,
        event: events.FromRunner,
    ) -> None:
        match event:
            case events.ReportsReceived():
                self._ending.received(event)
            case events.PlacesGranted(runner_id, grants):
                self._places.granted(runner_id, grants)
            case events.RunsDeclined(runner_id, execution_ids):
                self._verifying.dispatch_again(self._holding.of_runner(runner_id, execution_ids))
            case events.RunnerBeat(runner_id, _, _, draining, running, out_of_reach):
                if self._sessions.beat(runner_id, draining, running):
                    self._call_in(self._places.runners_changed())
                self._lease.beat(event)
                if out_of_reach:
                    self._sweeping.take_over(runner_id, out_of_reach)
            case events.RunnerJoined(runner):
                held = self._holding.of_runner(runner.runner_id)
                self._sessions.join(runner, len(held))
                self._cancelling.runner_joined(runner.runner_id)
                self._verifying.dispatch_again(held)
                self._claiming.offer_all(self._awaiting_runner.unpark(runner.deployments))
                self._call_in(self._places.runners_changed())
            case events.RunnerLeft(runner_id):
                self._sessions.leave(runner_id)
                self._lease.runner_left(runner_id)
                self._call_in(self._places.runners_changed())
                self._runs_away(runner_id)
            case _:
                assert_never(event)

    def _runs_away(self, runner_id: str) -> None:
        held = self._holding.of_runner(runner_id)
        if held:
            self._sweeping.runner_left(runner_id)
        for execution in held:
            self._window.runner_away(execution.job.job_id)

    def _from_store(self, event: events.StoreAnswer) -> None:
        context = self._context
        asked = context.answered(event.request_id, _database_now(event))
        if asked is None:
            return
        self._store_answered()
        self._take_answer(event, *asked)

    def _take_answer(self, event: events.StoreAnswer, asker: Asker, sent_ns: int) -> None:  # a flat table
        match event:
            case events.Claimed():
                self._places.claim_took(self._context.now_ns - sent_ns)
                self._claiming.claimed(event)
            case events.Ended():
                self._ending.ended(event)
            case events.LeaseRenewed():
                self._renewed(event, sent_ns)
            case events.WindowFetched():
                self._refetching.fetched(event, sent_ns)
            case events.OverdueFetched():
                self._claiming.offer_all(self._window.learn(job) for job in self._looks.fetched(event))
            case events.TicksSkipped():
                self._skipping.skipped(event)
            case events.ActivationsFetched() | events.Activated():
                self._activating.answered(event)
            case events.Adopted():
                self._sweeping.adopted(event)
            case events.ExecutionsFetched():
                assert isinstance(asker, Ending | Verifying | Sweeping | OverlapCancel)
                asker.fetched(event)
            case _:
                assert_never(event)

    def _renewed(self, event: events.LeaseRenewed, sent_ns: int) -> None:
        first = not self._started
        self._started = True
        held_since_ns = self._lease.held_since_ns
        self._lease.renewed(event, sent_ns)
        if self._lease.held_since_ns != held_since_ns:
            self._awaiting_runner.ready()
        self._sweeping.renewed(event.renewal)
        self._cancelling.asked(event.renewal.cancels, self._holding.executions)
        if first:
            self._membership.search()
            self._refetching.wish(FIRST_FETCH_DELAY_NS)

    def _store_failed(self, event: events.StoreFailed) -> None:
        context = self._context
        asker = context.lost(event.request_id)
        if asker is None:
            return
        context.stats.store_failures += 1
        if event.connection_lost and context.store_ok:
            context.store_down_since_ns = context.now_ns
            context.note(Level.ERROR, "store_down", reason=event.reason)
            self._lease.renew_soon()
        asker.failed(event)

    def _store_answered(self) -> None:
        context = self._context
        since_ns = context.store_down_since_ns
        if since_ns is not None:
            context.store_down_since_ns = None
            context.note(Level.INFO, "store_up", away_ms=(context.now_ns - since_ns) // MS)
            self._refetching.wish()

    def _from_peers(
        self, event: events.PacketReceived | events.PeerRefused | events.PeersFound | events.SeedsNamed
    ) -> None:
        match event:
            case events.PacketReceived(packet):
                self._membership.receive(packet)
            case events.PeerRefused(address):
                self._membership.refused(address)
            case events.PeersFound(peers):
                self._peers_found(peers)
            case events.SeedsNamed(addresses):
                self._membership.greet(tuple(("", address) for address in addresses))
            case _:
                assert_never(event)

    def _peers_found(self, peers: tuple[tuple[str, str], ...]) -> None:
        self._membership.found(peers)
        alone = all(controller_id == self._context.controller_id for controller_id, _ in peers)
        if alone and self._started and not self._refetching.fetched_once:
            self._refetching.wish()

    def _drain(self) -> None:
        context = self._context
        if context.draining:
            return
        context.draining = True
        context.note(Level.INFO, "draining", held=len(self._holding.executions))
        self._membership.absorb(self._membership.swim.drain(context.now_ns))
        self._lease.renew_soon()
        self._verifying.soon()

    def _drill(self, event: events.StandDownRequested | events.StandDownReleased) -> None:
        match event:
            case events.StandDownRequested(for_ms, forced, by):
                self._standing_down.begin(for_ms, forced, by)
            case events.StandDownReleased():
                self._claim_again(self._standing_down.end(DrillEnd.RELEASED))
            case _:
                assert_never(event)

    def _claim_again(self, ended: bool) -> None:
        """After a drill: what has become of what is due, its rows say."""
        if ended:
            self._refetching.wish()

    def _leave(self) -> None:
        """The last packets; whatever is still held is for others to adopt."""
        context = self._context
        context.note(Level.INFO, "leaving", held=len(self._holding.executions), ends_pending=len(self._ending))
        self._membership.absorb(self._membership.swim.leave(context.now_ns))
        context.effects.append(Leave())
        self._left = True

    def _turn(self) -> None:
        """Let every part do what is due: first what decides about the others."""
        context = self._context
        self._lease.turn()
        self._membership.turn()
        if self._membership.ring_changed:
            self._membership.ring_changed = False
            self._window.set_duties(self._membership.duties(), self._membership.ring.primary)
            self._places.duties_changed()
            if self._started:
                self._refetching.wish()
        if self._membership.buried:
            self._membership.buried = False
            self._verifying.doubt()
        if self._membership.gone:
            self._sweeping.adopt_from(tuple(self._membership.gone))
            self._membership.gone.clear()
        self._claim_again(self._standing_down.turn())
        if self._refetching.turn():
            self._membership.search()
            self._activating.wish()
        if self._claiming.wants_more:
            self._claiming.offer_all(self._window.pop_primary(context.now_us))
        self._looks.turn()
        self._call_in(self._places.call())
        self._activating.turn()
        self._claiming.turn(self._activating.precedes)
        self._places.tell()
        self._overlap_cancel.turn()
        self._cancelling.turn()
        self._awaiting_runner.turn()
        self._skipping.turn()
        self._ending.turn()
        self._look_after()
        self._sweeping.turn()
        self._verifying.turn()
        if context.draining and not self._left and self._is_done():
            self._leave()

    def _call_in(self, items: list[Entry | WaitingActivation]) -> None:
        """What waited for a place goes on to its claim."""
        for item in items:
            if isinstance(item, Entry):
                self._claiming.called(item)
            else:
                self._activating.called(item)

    def _look_after(self) -> None:
        """Follow up what claims and ends have found out."""
        if self._claiming.in_doubt or self._activating.in_doubt:
            self._claiming.in_doubt = self._activating.in_doubt = False
            self._sweeping.doubt()
            self._refetching.wish()
        for slot in self._ending.overlooked:
            self._looks.wish(slot)
        self._ending.overlooked.clear()
        if self._awaiting_runner.outdated:
            self._awaiting_runner.outdated = False
            self._refetching.wish_rarely()
        if self._claiming.stale_revision or self._ending.stale_revision:
            self._claiming.stale_revision = self._ending.stale_revision = False
            self._refetching.wish()

    def _is_done(self) -> bool:
        claiming = not (self._claiming.idle and self._activating.idle)
        return not self._holding.executions and not len(self._ending) and not claiming and self._sweeping.idle


def _database_now(event: events.StoreAnswer) -> int | None:
    match event:
        case events.LeaseRenewed(_, renewal):
            return renewal.database_now
        case events.Claimed(_, database_now, _) | events.WindowFetched(_, database_now, _):
            return database_now
        case events.OverdueFetched(_, database_now, _) | events.ActivationsFetched(_, database_now, _):
            return database_now
        case events.Activated(_, database_now, _):
            return database_now
        case events.Ended() | events.TicksSkipped() | events.Adopted() | events.ExecutionsFetched():
            return None
        case _:
            assert_never(event)
