"""One whole runner without I/O."""

from collections.abc import Iterable
from typing import assert_never

from cronring.runner.core.calls import OpenCalls
from cronring.runner.core.clock import DispatchClock
from cronring.runner.core.contact import Contact, ControllerContact
from cronring.runner.core.effects import (
    CloseLink,
    Effect,
    Finished,
    Level,
    LogLine,
    OpenLink,
    SendBeat,
    SendDeclined,
    SendGrants,
    SendReports,
    StartRuns,
    StopRuns,
)
from cronring.runner.core.events import (
    BeatAcked,
    CancelAsked,
    DemandsReceived,
    Dispatched,
    DrainAsked,
    Event,
    LinkDown,
    LinkOpened,
    LinkUp,
    ReportsAcked,
    RunnerWoke,
    RunsEnded,
    VerbAnswered,
    VerbAsked,
)
from cronring.runner.core.lanes import ModuleLanes
from cronring.runner.core.ledger import Offer, RunLedger
from cronring.runner.core.model import StopReason
from cronring.runner.core.places import GrantedPlaces
from cronring.runner.core.settings import MS_NS, RunnerSettings
from cronring.schema.execution import Report, Run

STOP_GRACE_MS = 2_000
LINKS_MAX = 200  # controllers; a cluster has far fewer, so a peer that names more makes them up
FENCE_GRACE_MS = 300  # 8 s and this lie below the 8.75 s after which controllers declare a run lost
NO_CONTACT = "not started: this runner's lease could not be renewed, so it may be taken for lost"
NOT_BEGUN = "not started: it was cancelled before it got here"
OFFERS_MAX = 10_000  # unacknowledged results, from which on this runner grants no places
TOO_LATE = "not started: it was past its deadline when it got here"


class RunnerCore:
    """Which runs to start and to stop, whom to tell of their ends, and whether there is contact.

    `addresses` are those of --controllers: they are never dropped. `rotation` spreads runners over controllers.
    `lanes`: of the modules in the order of Hello. Without lanes it takes all runs that come.
    """

    def __init__(
        self,
        settings: RunnerSettings,
        addresses: tuple[str, ...],
        rotation: int,
        now_ns: int,
        lanes: tuple[ModuleLanes, ...] = (),
    ) -> None:
        self._settings = settings
        self._given = addresses
        self._contact = Contact(settings, now_ns)
        self._contact.start_rotation(rotation)
        self._ledger = RunLedger()
        self.places = GrantedPlaces(lanes)
        self._calls = OpenCalls()
        self._clock = DispatchClock()
        self._fenced = False
        self._next_beat_ns = now_ns
        self._next_review_ns = now_ns + self._settings.review_ns
        self._drain_ends_ns: int | None = None
        self._farewell_ends_ns: int | None = None
        self._draining = False
        self._finished = False
        self._told_many = False
        self._declined: dict[str, dict[int, None]] = {}  # by who sent them; told when there is contact again
        self._effects: list[Effect] = []
        for address in addresses:
            self._learn(address, now_ns)

    @property
    def running(self) -> int:
        return len(self._ledger.held)

    @property
    def fence_ns(self) -> int:
        """When (monotonic) runs that may not go on unseen must be stopped, unless there is contact before."""
        return self._contact.fence_ns()

    def step(self, event: Event, now_ns: int) -> list[Effect]:  # noqa: C901, PLR0912  # one branch for each kind of event
        """What follows from `event`, and from the time."""
        match event:
            case Dispatched():
                self._dispatched(event, now_ns)
            case RunsEnded(results):
                self._ended(results, now_ns)
            case ReportsAcked(execution_ids):
                self._ledger.ack(execution_ids)
            case BeatAcked():
                self._beat_acked(event, now_ns)
            case LinkOpened(address, hello_ns):
                if address in self._contact.links:  # else dropped while it was connecting
                    self._contact.opened(address, hello_ns, now_ns)
                    self._beat(address, now_ns)
            case LinkUp():
                self._link_up(event, now_ns)
            case LinkDown():
                self._link_down(event, now_ns)
            case CancelAsked(execution_ids, reason, grace_ms):
                reason = reason or "cancelled"
                held = self._ledger.cancel(execution_ids, reason)
                self._stop(held, StopReason.CANCELLED, reason, grace_ms or STOP_GRACE_MS)
            case DemandsReceived(address, demands):
                self.places.demanded(address, demands, now_ns, self._now_us(now_ns))
            case VerbAsked() | VerbAnswered():
                self._calls.take(event, now_ns)
            case DrainAsked():
                self._drain(now_ns)
            case RunnerWoke():
                pass
            case _:
                assert_never(event)
        self._pass_time(now_ns)
        # docs/decisions/0025: without contact, runs that are given back would come again, and be declined again
        if self._declined and now_ns < self._contact.fence_ns():
            self._give_back()
        self._divide_places(now_ns)
        self._settle_calls(now_ns)
        effects, self._effects = self._effects, []
        return effects

    def next_deadline(self) -> int:
        """Monotonic ns at which `step(RunnerWoke())` is due."""
        deadline = min(self._next_beat_ns, self._next_review_ns)
        places_ns = self.places.next_deadline()
        if places_ns is not None:
            deadline = min(deadline, places_ns)
        calls_ns = self._calls.next_deadline()
        if calls_ns is not None:
            deadline = min(deadline, calls_ns)
        if not self._fenced and self._ledger.held:
            deadline = min(deadline, self._contact.fence_ns())
        for ends in (self._drain_ends_ns, self._farewell_ends_ns):
            if ends is not None and not self._finished:
                deadline = min(deadline, ends)
        return deadline

    # Links and contact

    def _learn(self, address: str, now_ns: int) -> None:
        link = self._contact.links.get(address)
        if link is None and len(self._contact.links) >= LINKS_MAX:
            if not self._told_many:
                self._told_many = True
                self._log(Level.WARNING, "too_many_controllers", known=LINKS_MAX, named=address[:200])
        elif link is None:
            self._contact.links[address] = ControllerContact(now_ns)
            self._effects.append(OpenLink(address))
        else:
            link.named_ns = now_ns

    def _peers_named(self, address: str, peers: tuple[str, ...], now_ns: int) -> None:
        link = self._contact.links[address]
        link.named_ns = now_ns
        link.peers = peers or link.peers
        for peer in link.peers:
            self._learn(peer, now_ns)

    def _link_up(self, event: LinkUp, now_ns: int) -> None:
        if event.address not in self._contact.links:
            return
        self._contact.welcomed(event.address, event.controller_id, event.registering_ms * MS_NS, now_ns)
        self._agree(event)
        self._log(Level.INFO, "controller_connected", address=event.address, controller=event.controller_id)
        self._end_fence(now_ns)
        self._peers_named(event.address, event.peers, now_ns)
        self._beat(event.address, now_ns)
        # Runs that go on already take places. Those places must not be granted a second time.
        if event.deployments is not None:
            self.places.link_up(event.address, event.deployments, self._ledger.held.values(), now_ns)
        self._offer(self._ledger.offered_to(""), now_ns)

    def _agree(self, event: LinkUp) -> None:
        """The cluster's durations are the ones by which its controllers declare runners lost."""
        try:
            self._settings = self._contact.settings = self._settings.agreed(event.beat_ms, event.fence_ms)
        except ValueError as error:
            self._log(Level.WARNING, "settings_refused", address=event.address, reason=str(error))

    def _link_down(self, event: LinkDown, now_ns: int) -> None:
        link = self._contact.links.get(event.address)
        if link is None:
            return
        if link.up:
            self._log(Level.WARNING, "controller_disconnected", address=event.address, reason=event.reason)
        elif event.reason != link.failure:  # once, not at each attempt
            self._log(Level.WARNING, "controller_not_connected", address=event.address, reason=event.reason)
        link.failure = event.reason
        was_renewer = self._contact.renewer == event.address
        gone = self._contact.went_down(event.address, event.refused, now_ns)
        self._declined.pop(event.address, None)  # it looks up what it holds once it is connected again
        self.places.link_down(event.address)
        self._calls.link_down(event.address, now_ns)
        self._offer(self._ledger.offered_to(event.address), now_ns)
        if was_renewer or gone:  # a beat names the controller, so that another takes over its claims for this runner
            self._beat_all(now_ns)
        if gone:  # and once more: PostgreSQL may just be committing a last claim of that controller
            self._next_beat_ns = now_ns + self._settings.gone_again_ns

    def _beat_acked(self, event: BeatAcked, now_ns: int) -> None:
        if event.address not in self._contact.links:
            return
        self._peers_named(event.address, event.peers, now_ns)
        renewer = self._contact.renewer
        self._contact.acked(event.address, event.sequence, event.renewed, event.database_ok, now_ns)
        self._end_fence(now_ns)
        # This controller can commit nothing now; another one may.
        if not event.database_ok:
            self._offer_elsewhere(now_ns)
        if renewer is not None and self._contact.renewer is None and self._contact.sighted_addresses():
            self._beat_all(now_ns)  # the renewer can't reach PostgreSQL: ask the next one at once

    def _beat_all(self, now_ns: int) -> None:
        for address in self._contact.open_addresses():
            self._beat(address, now_ns)
        self._next_beat_ns = now_ns + self._settings.beat_ns
        self._offer_elsewhere(now_ns)

    def _beat(self, address: str, now_ns: int) -> None:
        sequence, renew = self._contact.beats(address, self._draining, now_ns)
        out_of_reach = self._contact.out_of_reach(now_ns) if renew else ()
        self._effects.append(SendBeat(address, sequence, renew, self._draining, self.running, out_of_reach))

    # Runs

    def _dispatched(self, event: Dispatched, now_ns: int) -> None:
        link = self._contact.links.get(event.address)
        self._clock.sample(event.now_us, 0 if link is None else link.answered_ns, now_ns)
        for run in event.runs:
            if run.place_epoch:
                self.places.arrived(event.address, run, now_ns)
        fresh, ended = self._ledger.take(event.address, event.runs)
        for offer in ended:
            offer.address = event.address
        self._offer(ended, now_ns)
        in_contact = now_ns < self._contact.fence_ns()
        # A runner that drains may be gone before it can give runs back. So it refuses them instead of declining.
        if not in_contact and link is not None and not self._draining:
            self._decline(event.address, fresh)
        else:
            self._begin(fresh, in_contact, now_ns)

    def _ended(self, results: list[Report], now_ns: int) -> None:
        self.places.ended(results, now_ns)
        if self._calls:
            self._calls.ended(result.execution_id for result in results)
        self._offer(self._ledger.end(results, now_ns), now_ns)

    def _settle_calls(self, now_ns: int) -> None:
        if self._calls:
            self._effects += self._calls.settle(self._contact.takers(now_ns), now_ns)

    # docs/decisions/0022: refused here, and not in the shell, so that simulated runners refuse it too
    def _begin(self, runs: list[Run], in_contact: bool, now_ns: int) -> None:
        now_us = self._now_us(now_ns)
        started: list[Run] = []
        refused: list[Report] = []
        for run in runs:
            # In the first two cases the successor of this run may be on its way already: the two could overlap.
            if not in_contact:
                refused.append(_not_started(run, StopReason.DISCONNECTED, NO_CONTACT, now_us))
            elif run.deadline_us <= now_us:
                refused.append(_not_started(run, StopReason.TIMED_OUT, TOO_LATE, now_us))
            elif (why := self._ledger.cancelled(run.execution_id)) is not None:
                refused.append(_not_started(run, StopReason.CANCELLED, f"{why}\n{NOT_BEGUN}", now_us))
            else:
                self.places.took(run, now_ns)
                started.append(run)
        if started:
            self._effects.append(StartRuns(started, self._clock.offset_us))
        self._offer(self._ledger.end(refused, now_ns), now_ns)

    # docs/decisions/0025: given back, not refused: nothing of it has begun
    def _decline(self, address: str, runs: list[Run]) -> None:
        """The runs may have been declared lost. The controller looks that up before it sends them again."""
        if not runs:
            return
        self._ledger.forget(run.execution_id for run in runs)
        self._declined.setdefault(address, {}).update((run.execution_id, None) for run in runs)
        self._log(Level.WARNING, "runs_declined", address=address, runs=len(runs))

    def _give_back(self) -> None:
        for address, execution_ids in self._declined.items():
            self._effects.append(SendDeclined(address, tuple(execution_ids)))
        self._declined.clear()

    def _now_us(self, now_ns: int) -> int:
        return now_ns // 1000 + self._clock.offset_us

    def _divide_places(self, now_ns: int) -> None:
        self.places.pause(len(self._ledger.offers) >= OFFERS_MAX)
        for address, grants in self.places.settle(now_ns).items():
            self._effects.append(SendGrants(address, grants))
        for address in self.places.voided:
            self._log(Level.WARNING, "places_taken_back", address=address)
        self.places.voided.clear()

    def _offer(self, offers: list[Offer], now_ns: int) -> None:
        """Send each to its controller, or to another one if that controller, or its PostgreSQL, is out of reach."""
        if not offers:
            return
        takers = self._contact.takers(now_ns)
        batches: dict[str, list[Report]] = {}
        for offer in offers:
            if offer.address not in takers:
                offer.address = takers[offer.result.execution_id % len(takers)] if takers else ""
            offer.offered_ns = now_ns
            if offer.address:
                batches.setdefault(offer.address, []).append(offer.result)
        for address, results in batches.items():
            self._effects.append(SendReports(address, results))

    def _offer_elsewhere(self, now_ns: int) -> None:
        """Offer again, elsewhere, what a controller can't commit or doesn't answer. An end is decided only once."""
        takers = self._contact.takers(now_ns)
        waiting = self._ledger.stale(now_ns - self._settings.beat_ns) if takers else []
        self._offer([offer for offer in waiting if offer.address and offer.address not in takers], now_ns)

    def _stop(self, execution_ids: Iterable[int], reason: StopReason, message: str, grace_ms: int) -> None:
        held = tuple(execution_id for execution_id in execution_ids if execution_id in self._ledger.held)
        if held:
            self._effects.append(StopRuns(held, reason, message, grace_ms))

    # Time

    def _pass_time(self, now_ns: int) -> None:
        if now_ns >= self._next_beat_ns:
            self._beat_all(now_ns)
        if not self._fenced and self._ledger.held and now_ns >= self._contact.fence_ns():
            self._fence()
        if now_ns >= self._next_review_ns:
            self._next_review_ns = now_ns + self._settings.review_ns
            self._review(now_ns)
        if self._draining:
            self._end_drain(now_ns)

    def _fence(self) -> None:
        self._fenced = True
        stopped = [run.execution_id for run in self._ledger.held.values() if not run.finish]
        values = {"stopped": len(stopped), "finishing": len(self._ledger.held) - len(stopped)}
        self._log(Level.WARNING, "contact_lost", **values)
        message = "no controller could renew this runner's lease for 8 s, so they may take it for lost"
        self._stop(stopped, StopReason.DISCONNECTED, message, FENCE_GRACE_MS)

    def _end_fence(self, now_ns: int) -> None:
        if self._fenced and now_ns < self._contact.fence_ns():
            self._fenced = False
            self._log(Level.INFO, "contact_regained")

    def _review(self, now_ns: int) -> None:
        """Each second: offer again what nobody acknowledged, and drop controllers that are long gone."""
        stale = self._ledger.stale(now_ns - self._settings.ack_patience_ns)
        up = self._contact.up_addresses()
        for offer in stale:
            others = [address for address in up if address != offer.address]
            if others:
                offer.address = others[offer.result.execution_id % len(others)]
        self._offer(stale, now_ns)
        for address, link in list(self._contact.links.items()):
            if link.open or address in self._given:
                continue
            if now_ns - link.named_ns > self._settings.forget_peer_ns:
                del self._contact.links[address]
                self._effects.append(CloseLink(address))

    # Leaving

    def _drain(self, now_ns: int) -> None:
        if not self._draining:
            self._draining = True
            self.places.close()
            self._drain_ends_ns = now_ns + self._settings.drain_ns
            self._log(Level.INFO, "draining", running=self.running)
            self._beat_all(now_ns)

    def _end_drain(self, now_ns: int) -> None:
        if self._drain_ends_ns is not None and now_ns >= self._drain_ends_ns:
            self._drain_ends_ns = None
            self._stop(list(self._ledger.held), StopReason.DRAINED, "the runner was stopped", STOP_GRACE_MS)
        if self._ledger.held:
            self._farewell_ends_ns = None  # one more came from a controller that hadn't heard of the drain
            return
        # If no controller can take the last results, the drain must still end.
        if self._farewell_ends_ns is None:
            self._farewell_ends_ns = now_ns + self._settings.farewell_ns
        # A controller sends no more runs once it has acknowledged a beat that says `draining`.
        done = not self._ledger.offers and self._contact.all_told()
        if not self._finished and (done or now_ns >= self._farewell_ends_ns):
            self._finished = True
            self._effects.append(Finished(len(self._ledger.offers)))

    def _log(self, level: Level, event: str, **values: str | int | float | bool) -> None:
        self._effects.append(LogLine(level, event, values))


def _not_started(run: Run, reason: StopReason, message: str, now_us: int) -> Report:
    at_us = max(now_us, run.claimed_at_us)
    return Report(
        run.execution_id, run.job_id, run.claimed_at_us, reason.outcome, at_us, at_us, reason.error_type, message
    )
