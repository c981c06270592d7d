"""Which part an event is told to."""

from typing import Final, assert_never

from cronring.controller.core.node import events
from cronring.controller.core.node.context import MS, Asker
from cronring.controller.core.node.drill import DrillEnd
from cronring.controller.core.node.effects import Level
from cronring.controller.core.node.ending import Ending
from cronring.controller.core.node.events import Event
from cronring.controller.core.node.follow_ups import NONE, FollowUps
from cronring.controller.core.node.overlap_cancel import OverlapCancel
from cronring.controller.core.node.parts import Parts
from cronring.controller.core.node.sweeping import Sweeping
from cronring.controller.core.node.verifying import Verifying

FIRST_FETCH_DELAY_NS: Final = 1_000 * MS  # at most; sooner once it is known who the peers are, if any


class Routing:
    """Gives each event to its part. Returns the part's follow-ups for other parts."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def take(self, event: Event) -> FollowUps:  # noqa: C901  one branch for each kind of event
        parts = self._parts
        event = parts.unread.let_through(event)
        match event:
            case events.Woke():
                pass
            case events.PacketReceived() | events.PeerRefused() | events.PeersFound() | events.SeedsNamed():
                return self._from_peers(event)
            case events.JobsNotified() | events.CancelsNotified() | events.PlacesFreed() | events.ConsumersNotified():
                self._notified(event)
            case events.JobsCreated(jobs):
                parts.window.add_own(jobs)
            case events.ActivationsCreated(activations):
                parts.activating.created(activations)
            case events.CancelsAsked(cancels):
                parts.cancelling.asked(cancels, parts.holding.executions)
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
                return parts.leaving.drain()
            case events.DrainExpired():
                return parts.leaving.leave()
            case events.DrillRequested() | events.DrillReleased():
                return self._drill(event)
            case events.StoreFailed():
                return self._store_failed(event)
            case _:
                return self._from_store(event)
        return NONE

    def _from_peers(
        self, event: events.PacketReceived | events.PeerRefused | events.PeersFound | events.SeedsNamed
    ) -> FollowUps:
        membership = self._parts.membership
        match event:
            case events.PacketReceived(packet):
                return membership.receive(packet)
            case events.PeerRefused(address):
                return membership.refused(address)
            case events.PeersFound(peers):
                return self._peers_found(peers)
            case events.SeedsNamed(addresses):
                return membership.greet(tuple(("", address) for address in addresses))
            case _:
                assert_never(event)

    def _peers_found(self, peers: tuple[tuple[str, str], ...]) -> FollowUps:
        parts = self._parts
        found = parts.membership.found(peers)
        alone = all(controller_id == parts.context.controller_id for controller_id, _ in peers)
        if alone and parts.lease.answered and not parts.refetching.fetched_once:
            parts.refetching.ask_soon()
        return found

    def _notified(
        self, event: events.JobsNotified | events.CancelsNotified | events.PlacesFreed | events.ConsumersNotified
    ) -> None:
        parts = self._parts
        match event:
            case events.JobsNotified():
                parts.refetching.ask_soon()
            case events.CancelsNotified():
                parts.lease.ask_soon()
            case events.PlacesFreed(limit):
                parts.limiting.places_freed(limit)
                parts.activating.places_freed(limit)
            case events.ConsumersNotified():
                if parts.holding.has_queued:
                    parts.collecting.ask_soon()
            case _:
                assert_never(event)

    def _from_runner(self, event: events.FromRunner) -> None:
        parts = self._parts
        match event:
            case events.ReportsReceived():
                parts.ending.received(event)
            case events.PlacesGranted(runner_id, grants):
                parts.places.granted(runner_id, grants)
            case events.RunsDeclined(runner_id, execution_ids):
                parts.verifying.dispatch_again(parts.holding.of_runner(runner_id, execution_ids))
            case events.RunnerBeat(runner_id, _, _, draining, running, out_of_reach):
                if parts.runners.beat(runner_id, draining, running):
                    parts.call_in(parts.places.runners_changed())
                parts.lease.beat(event)
                if out_of_reach:
                    parts.sweeping.take_over(runner_id, out_of_reach)
            case events.RunnerJoined(runner):
                held = parts.holding.of_runner(runner.runner_id)
                parts.runners.join(runner, len(held))
                parts.cancelling.runner_joined(runner.runner_id)
                parts.verifying.dispatch_again(held)
                parts.claiming.offer_all(parts.awaiting_runner.let_in(runner.deployments))
                parts.call_in(parts.places.runners_changed())
            case events.RunnerLeft(runner_id):
                self._runner_left(runner_id)
            case _:
                assert_never(event)

    def _runner_left(self, runner_id: str) -> None:
        parts = self._parts
        parts.runners.leave(runner_id)
        parts.lease.runner_left(runner_id)
        parts.call_in(parts.places.runners_changed())
        held = parts.holding.of_runner(runner_id)
        if held:
            parts.sweeping.runner_left(runner_id)
        for execution in held:
            parts.window.runner_away(execution.job.job_id)

    def _drill(self, event: events.DrillRequested | events.DrillReleased) -> FollowUps:
        drill = self._parts.drill
        match event:
            case events.DrillRequested(for_ms, forced, by):
                drill.begin(for_ms, forced, by)
                return NONE
            case events.DrillReleased():
                return drill.end(DrillEnd.RELEASED)
            case _:
                assert_never(event)

    def _from_store(self, event: events.StoreAnswer) -> FollowUps:
        context = self._parts.context
        asked = context.answered(event.request_id, _database_now(event))
        if asked is None:
            return NONE
        since_ns = context.store_down_since_ns
        if since_ns is not None:
            context.store_down_since_ns = None
            context.log(Level.INFO, "store_up", away_ms=(context.now_ns - since_ns) // MS)
            self._parts.refetching.ask_soon()
        return self._take_answer(event, *asked)

    def _take_answer(self, event: events.StoreAnswer, asker: Asker, sent_ns: int) -> FollowUps:  # noqa: C901  a flat table
        parts = self._parts
        match event:
            case events.Claimed():
                parts.places.claim_took(parts.context.now_ns - sent_ns)
                return parts.claiming.claimed(event)
            case events.Enqueued():
                return parts.enqueuing.enqueued(event)
            case events.Ended():
                return parts.ending.ended(event)
            case events.QueueReported(_, reports):
                parts.collecting.fetched(event)
                parts.ending.received(events.ReportsReceived("", reports))
            case events.LeaseRenewed():
                return self._renewed(event, sent_ns)
            case events.WindowFetched():
                parts.refetching.fetched(event, sent_ns)
            case events.OverdueFetched():
                parts.claiming.offer_all(parts.window.learn(job) for job in parts.looks.fetched(event))
            case events.TicksSkipped():
                parts.skipping.skipped(event)
            case events.ActivationsFetched() | events.Activated():
                parts.activating.answered(event)
            case events.Adopted():
                parts.sweeping.adopted(event)
            case events.ExecutionsFetched():
                assert isinstance(asker, Ending | Verifying | Sweeping | OverlapCancel)
                asker.fetched(event)
            case _:
                assert_never(event)
        return NONE

    def _renewed(self, event: events.LeaseRenewed, sent_ns: int) -> FollowUps:
        parts = self._parts
        first = not parts.lease.answered
        if parts.lease.renewed(event, sent_ns):
            parts.awaiting_runner.ready()
            parts.verifying.doubt()
        parts.sweeping.renewed(event.renewal)
        if event.renewal.queue_reports:
            parts.collecting.ask_soon()
        parts.cancelling.asked(event.renewal.cancels, parts.holding.executions)
        if first:
            parts.membership.search()
            parts.refetching.ask_soon(FIRST_FETCH_DELAY_NS)
        return parts.membership.listed(event.renewal.controllers)

    def _store_failed(self, event: events.StoreFailed) -> FollowUps:
        parts, context = self._parts, self._parts.context
        asker = context.lost(event.request_id)
        if asker is None:
            return NONE
        context.stats.store_failures += 1
        if event.connection_lost and context.store_ok:
            context.store_down_since_ns = context.now_ns
            context.log(Level.ERROR, "store_down", reason=event.reason)
            parts.lease.renew_soon()
        return asker.failed(event) or NONE


def _database_now(event: events.StoreAnswer) -> int | None:
    match event:
        case events.LeaseRenewed(_, renewal):
            return renewal.database_now
        case events.Claimed(_, database_now, _) | events.WindowFetched(_, database_now, _):
            return database_now
        case events.Enqueued(_, database_now, _):
            return database_now
        case events.OverdueFetched(_, database_now, _) | events.ActivationsFetched(_, database_now, _):
            return database_now
        case events.Activated(_, database_now, _):
            return database_now
        case events.Ended() | events.TicksSkipped() | events.Adopted():
            return None
        case events.ExecutionsFetched() | events.QueueReported():
            return None
        case _:
            assert_never(event)
