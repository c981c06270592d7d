"""The controller's lease: its right to claim.

Renewed in PostgreSQL once a second, by one statement that also renews the leases of the runners that asked for it. Its
end is counted on the controller's own monotonic clock, from the *sending* of the renewal, less a margin. So a
controller always steps down before PostgreSQL would let another one adopt what it holds.
"""

from collections.abc import Iterable

from cronring.controller.core.node.cancelling import Cancelling
from cronring.controller.core.node.context import MS, NodeContext
from cronring.controller.core.node.effects import AckBeat, Level, RenewLease
from cronring.controller.core.node.events import LeaseRenewed, RunnerBeat, StoreFailed

BACKOFF_BASE_MS = 100


class Lease:
    """Renewals, one at a time, and the runners' beats that wait for them."""

    __slots__ = (
        "_again",
        "_asked",
        "_cancelling",
        "_context",
        "_failures",
        "_heard_ns",
        "_renew_at_ns",
        "_renewing",
        "_told_lost",
        "_waiting",
        "answered",
        "held_since_ns",
        "valid_until_ns",
    )

    def __init__(self, context: NodeContext, cancelling: Cancelling) -> None:
        self._context = context
        self._cancelling = cancelling
        self._renew_at_ns = context.now_ns
        self._renewing: int | None = None
        self._again = False  # as soon as the one under way is answered
        self._failures = 0
        self._told_lost = True
        self._waiting: dict[str, int] = {}  # runner id -> sequence of its latest beat that asks for a renewal
        self._asked: dict[str, int] = {}  # the same, of the renewal under way
        self._heard_ns: dict[str, int] = {}  # runner id -> when it last beat, since the latest renewal
        self.answered = False  # PostgreSQL has answered a renewal, so other requests make sense
        self.held_since_ns: int | None = None  # since when it has been valid without a gap
        self.valid_until_ns = context.now_ns

    @property
    def valid(self) -> bool:
        return self._context.now_ns < self.valid_until_ns

    @property
    def may_claim(self) -> bool:
        """What is due may be claimed or skipped now. False: that is for later, or for others."""
        return self._context.store_ok and self.valid and not self._context.abstains

    def unbroken_ns(self) -> int:
        """For how long it has been valid without a gap; 0 while it isn't."""
        return self._context.now_ns - self.held_since_ns if self.valid and self.held_since_ns is not None else 0

    def next_deadline(self) -> int | None:
        renewal = self._renew_at_ns if self._renewing is None else None
        if self._told_lost:
            return renewal
        return self.valid_until_ns if renewal is None else min(renewal, self.valid_until_ns)

    def act(self) -> None:
        """Renew if it is time; notice that it ran out."""
        context = self._context
        if not self._told_lost and not self.valid:
            self._told_lost = True
            self.held_since_ns = None
            context.log(Level.ERROR, "lease_lost", for_ms=(context.now_ns - self.valid_until_ns) // MS)
            # If PostgreSQL hangs, a renewal waits for long. But that there is no lease is known now, so runners hear it
            # now.
            for waiting in (self._asked, self._waiting):
                for runner_id, sequence in waiting.items():
                    self._acknowledge(runner_id, sequence, renewed=False)
        if self._renewing is None and context.now_ns >= self._renew_at_ns:
            self._renewing = context.request(self)
            self._asked, self._waiting = self._waiting, {}
            cancelling = self._cancelling.requested()
            context.effects.append(RenewLease(self._renewing, context.draining, tuple(self._to_renew()), cancelling))

    def _to_renew(self) -> Iterable[str]:
        """The runners that asked. If this renewal brings a lease back, all runners that beat lately: claims follow at
        once.

        They were told that the database is away, and run on unseen. Other controllers had the database all the time.
        They would declare these runners' new claims lost.
        """
        if self.valid:
            return self._asked
        since_ns = self._context.now_ns - 2 * self._context.settings.runner_beat_ms * MS
        heard = (runner_id for runner_id, heard_ns in self._heard_ns.items() if heard_ns >= since_ns)
        return dict.fromkeys((*self._asked, *heard))

    def renew_soon(self) -> None:
        """Something changed that the `controllers` table should say."""
        self._renew_at_ns = min(self._renew_at_ns, self._context.now_ns)

    def ask_soon(self) -> None:
        """There is news in PostgreSQL, which the answer to a renewal under way may not have."""
        self.renew_soon()
        self._again = self._renewing is not None

    def renewed(self, event: LeaseRenewed, sent_ns: int) -> bool:
        """Whether it is held (again) as of now."""
        context = self._context
        self._renewing = None
        self._failures = 0
        self.answered = True
        was_valid = self.valid
        self.valid_until_ns = sent_ns + (context.settings.lease_ms - context.settings.lease_margin_ms) * MS
        if self.valid:
            # docs/decisions/0018: to declare runners lost takes an unbroken lease, so it is noted when this one began
            if not was_valid:
                self.held_since_ns = context.now_ns
                context.log(Level.INFO, "lease_held")
            self._told_lost = False
        # Counted from the sending, as the lease is. So slow answers don't make renewals rare.
        wait_ns = 0 if self._again else context.jittered_ns(context.settings.lease_renew_ms)
        self._renew_at_ns, self._again = max(context.now_ns, sent_ns + wait_ns), False
        renewed = dict.fromkeys(event.renewal.renewed_runners)
        for runner_id, sequence in self._asked.items():
            self._acknowledge(runner_id, sequence, runner_id in renewed)
        self._asked = {}
        if self.valid:
            self._heard_ns = {}
        return self.valid and not was_valid

    def failed(self, event: StoreFailed) -> None:  # noqa: ARG002  how it failed makes no difference here
        context = self._context
        self._renewing = None
        self._failures += 1
        backoff_ns = context.backoff_ns(self._failures, BACKOFF_BASE_MS, context.settings.lease_renew_ms)
        self._renew_at_ns = context.now_ns + backoff_ns
        for waiting in (self._asked, self._waiting):
            for runner_id, sequence in waiting.items():
                self._acknowledge(runner_id, sequence, renewed=False)
        self._asked, self._waiting = {}, {}

    def beat(self, event: RunnerBeat) -> None:
        """Answer a runner's beat: at once, or after the renewal it asks for.

        Without a lease both happen. Of two answers to one beat, the runner takes the first.
        """
        self._heard_ns[event.runner_id] = self._context.now_ns
        # Without a lease it still waits: the renewal that brings one back renews this runner as well.
        if event.renew:
            self._waiting[event.runner_id] = event.sequence
        if not event.renew or not self.valid:
            self._acknowledge(event.runner_id, event.sequence, renewed=False)

    def runner_left(self, runner_id: str) -> None:
        """Forget its request for a renewal. A renewal after its death would delay the moment at which it is lost."""
        self._waiting.pop(runner_id, None)
        self._heard_ns.pop(runner_id, None)

    # docs/decisions/0032: beats are answered without the database, too, or runners hang up
    def _acknowledge(self, runner_id: str, sequence: int, renewed: bool) -> None:
        # While the lease is valid, this controller might declare a runner lost. So only without it may it say that the
        # database is away, which lets runners go on unseen.
        peers = self._context.peers
        if not self.valid:
            # docs/decisions/0021: controllers that came since this one was cut off have rows that it can't read
            peers += self._context.rowless
        self._context.effects.append(AckBeat(runner_id, sequence, renewed, self.valid, peers))
