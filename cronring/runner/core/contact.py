"""When is a runner in contact with the cluster, and whom does it ask to renew its lease?

The controllers declare a runner's executions lost when its lease in PostgreSQL (`last_seen_at`) is 8.75 s old. So:

- An acknowledged beat whose renewal was committed is contact, counted from the beat's *sending*. `last_seen_at` is that
  instant or later, however long the acknowledgement took.
- It is contact too when all known controllers say that they can't reach PostgreSQL: then nobody can declare a run lost.
  It counts from the oldest of those beats. All must say so, as a silent controller might still reach PostgreSQL. That
  includes controllers that others take for dead, if they held a lease when last heard of: only the others may be cut
  off from them.
- A welcome is contact, as registering ends with setting `last_seen_at`. It counts from the sending of Hello, plus the
  time that the controller says it took to register. So a runner that comes back after an outage takes at once what was
  waiting for it. It does so even if deploying a large module took longer than the fence.
- A mere answer of a controller is no contact, as it has renewed nothing.
"""

from typing import Final

from cronring.runner.core.settings import RunnerSettings

CLOCKS_DIFFER_BY: Final = 500  # one part in so many, at most: a controller's seconds may be shorter than this machine's


class ControllerContact:
    """What is known of one controller."""

    __slots__ = (
        "answered_ns",
        "blind_since_ns",
        "controller_id",
        "down_since_ns",
        "failure",
        "gone",
        "hello_ns",
        "named_ns",
        "open",
        "peers",
        "pending",
        "sequence",
        "told",
        "up",
    )

    def __init__(self, now_ns: int) -> None:
        self.failure = ""  # why it was last down
        self.controller_id = ""  # of the controller that was last up at this address
        self.down_since_ns = now_ns  # while it isn't open
        self.gone = False  # while it isn't open: nobody listens at its address
        self.open = False  # the stream stands
        self.hello_ns = now_ns  # its Hello was sent then, or later
        self.answered_ns = now_ns  # when the latest beat that it has answered was sent; what comes now, it sent later
        self.up = False  # it has welcomed this runner
        self.told = False  # it has acknowledged a beat that said `draining`, so it sends no more runs
        self.sequence = 0
        self.pending: dict[int, tuple[int, bool, bool]] = {}  # sequence -> (sent, renewal asked, draining)
        self.blind_since_ns: int | None = None  # sending of the latest beat it answered without a database
        self.named_ns = now_ns  # when it was last connected, or named by a controller
        self.peers: tuple[str, ...] = ()  # the controllers that it named last


class Contact:
    """Links by address, the time of contact, and the renewer."""

    def __init__(self, settings: RunnerSettings, now_ns: int) -> None:
        self.links: dict[str, ControllerContact] = {}
        self.contact_ns = now_ns  # a runner that has just started runs nothing yet
        self.renewer: str | None = None
        self.settings = settings
        self._renewer_since_ns = now_ns
        self._rotation = 0

    def up_addresses(self) -> list[str]:
        return sorted(address for address, link in self.links.items() if link.up)

    def open_addresses(self) -> list[str]:
        return sorted(address for address, link in self.links.items() if link.open)

    def sighted_addresses(self) -> list[str]:
        """Controllers that may be asked for a renewal with some hope."""
        return [address for address in self.up_addresses() if self.links[address].blind_since_ns is None]

    # docs/decisions/0040: two unanswered beats are enough: an end is decided only once
    def takers(self, now_ns: int) -> list[str]:
        """Controllers to offer results to: those that answer and reach PostgreSQL; else all that are connected."""
        patience_ns = self.settings.renewal_patience_ns
        sighted = self.sighted_addresses()
        answering = [address for address in sighted if now_ns - self.links[address].answered_ns <= patience_ns]
        return answering or sighted or self.up_addresses()

    # docs/decisions/0039: or what they claimed for it waits for SWIM's verdict
    def out_of_reach(self, now_ns: int) -> tuple[str, ...]:
        """Ids of controllers that were connected and are gone, or out of reach for a while.

        Runs that such a controller has claimed for this runner may never have come here, and results may never have
        reached it. Once it notices, it claims nothing for this runner any more. So after some time only what it adopts
        from others is left to be taken over, and its id is named only now and then.
        """
        return tuple(
            link.controller_id
            for link in self.links.values()
            if link.controller_id and not link.open and self._to_be_taken_over(link, now_ns)
        )

    def _to_be_taken_over(self, link: ControllerContact, now_ns: int) -> bool:
        settings = self.settings
        down_ns = now_ns - link.down_since_ns
        # docs/decisions/0039: two beats, as a stream that is opened anew at once has lost nothing
        often = link.gone or 2 * settings.beat_ns <= down_ns
        often = often and down_ns <= settings.take_over_ns
        return often or (down_ns > settings.take_over_ns and down_ns % settings.take_over_again_ns < settings.beat_ns)

    def all_told(self) -> bool:
        """Every controller in reach knows that this runner drains."""
        return all(link.told for link in self.links.values() if link.open)

    def fence_ns(self) -> int:
        """When runs must be stopped, unless there is contact before (monotonic ns)."""
        return self.contact_ns + self.settings.fence_ns

    def beats(self, address: str, draining: bool, now_ns: int) -> tuple[int, bool]:
        """(sequence, renew) of the beat that is about to be sent to that controller."""
        self._choose_renewer(now_ns)
        link = self.links[address]
        link.sequence += 1
        # Close to the fence, load no longer matters: everybody is asked.
        desperate = now_ns - self.contact_ns > self.settings.fence_ns // 2
        renew = address == self.renewer or desperate
        link.pending[link.sequence] = (now_ns, renew, draining)
        if len(link.pending) > 64:
            del link.pending[next(iter(link.pending))]
        return link.sequence, renew

    def acked(self, address: str, sequence: int, renewed: bool, database_ok: bool, now_ns: int) -> None:
        link = self.links[address]
        sent = link.pending.pop(sequence, None)
        if sent is None:
            return
        sent_ns, renew_asked, draining = sent
        link.answered_ns = max(link.answered_ns, sent_ns)
        link.told = link.told or draining
        link.blind_since_ns = None if database_ok else sent_ns
        if renewed and renew_asked:
            self.contact_ns = max(self.contact_ns, sent_ns)
            if address == self.renewer:
                self._renewer_since_ns = now_ns
        elif address == self.renewer and not database_ok:
            self.renewer = None
        self._all_blind(now_ns)

    def _all_blind(self, now_ns: int) -> None:
        oldest = now_ns
        for link in self.links.values():
            if not link.open and now_ns - link.named_ns > self.settings.forget_peer_ns:
                continue  # down for long, and no controller believes that it lives
            # docs/decisions/0021: one that is silent may reach PostgreSQL, and declare this runner lost
            if not link.open or link.blind_since_ns is None:
                return
            oldest = min(oldest, link.blind_since_ns)
        self.contact_ns = max(self.contact_ns, oldest)

    def opened(self, address: str, hello_ns: int, now_ns: int) -> None:
        link = self.links[address]
        link.open, link.gone = True, False
        link.hello_ns = link.answered_ns = hello_ns
        link.named_ns = now_ns
        link.blind_since_ns = None
        link.pending.clear()

    # docs/decisions/0025: counted from the sending of Hello, less what the registration took
    def welcomed(self, address: str, controller_id: str, registering_ns: int, now_ns: int) -> None:
        """`registering_ns`: the lease was renewed so long after Hello had come, or later, by the controller's clock."""
        link = self.links[address]
        link.up = True
        link.controller_id = controller_id
        # The two clocks may run at different speeds. An instant too early costs runs; one too late lets runs overlap.
        registered_ns = link.hello_ns + registering_ns - registering_ns // CLOCKS_DIFFER_BY
        self.contact_ns = max(self.contact_ns, min(registered_ns, now_ns))

    def went_down(self, address: str, refused: bool, now_ns: int) -> bool:
        """True if this controller was connected before, and only now turns out to be gone."""
        link = self.links[address]
        if link.open:
            link.named_ns = link.down_since_ns = now_ns
        newly_gone = refused and not link.gone and bool(link.controller_id)
        link.gone = link.gone or refused
        link.open = link.up = link.told = False
        link.pending.clear()
        if self.renewer == address:
            self.renewer = None
        return newly_gone

    def _choose_renewer(self, now_ns: int) -> None:
        """Stay with a controller that renews; move on if it has not renewed for a while, or is gone."""
        patience_ns = self.settings.renewal_patience_ns
        if self.renewer is not None and now_ns - self._renewer_since_ns <= patience_ns:
            return
        # If no controller reaches PostgreSQL, ask any of them: one will be the first to reach it again.
        candidates = self.sighted_addresses() or self.open_addresses()
        if not candidates:
            self.renewer = None
            return
        others = [address for address in candidates if address != self.renewer] or candidates
        self.renewer = others[self._rotation % len(others)]
        self._rotation += 1
        self._renewer_since_ns = now_ns

    def start_rotation(self, rotation: int) -> None:
        """Spread runners over controllers: the first renewer is the `rotation`-th."""
        self._rotation = rotation
