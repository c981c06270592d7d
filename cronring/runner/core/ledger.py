"""The runs that a runner holds, and the results that no controller has acknowledged.

A run starts once by its execution id, even if several controllers dispatch it several times. A result is kept until a
controller has committed it. It is offered to another controller when a stream breaks, or after a while in silence.
"""

from collections.abc import Iterable

from cronring.schema.execution import Report, Run

_GENERATION = 131_072
_CANCELS_KEPT = 10_000


class Offer:
    """A result on its way. `address` is "" while there is nobody to offer it to."""

    __slots__ = ("address", "offered_ns", "result")

    def __init__(self, result: Report, address: str, offered_ns: int) -> None:
        self.result = result
        self.address = address
        self.offered_ns = offered_ns


class RunLedger:
    """Held runs, offers, and ids that were finished and acknowledged lately."""

    def __init__(self) -> None:
        self.held: dict[int, Run] = {}
        self.offers: dict[int, Offer] = {}
        self._dispatcher: dict[int, str] = {}
        # A controller that adopts may dispatch again what another one has just acknowledged. Two generations of ids:
        # the older one is dropped as a whole, and what was acknowledged lately is always known.
        self._acked: set[int] = set()
        self._acked_before: set[int] = set()
        self._cancels: dict[int, str] = {}  # by run that has not come yet: why it is cancelled; the oldest first

    def take(self, address: str, runs: list[Run]) -> tuple[list[Run], list[Offer]]:
        """(runs to start, offers for executions that ended already and that this controller asks for again)."""
        fresh: list[Run] = []
        ended: list[Offer] = []
        for run in runs:
            execution_id = run.execution_id
            if execution_id in self.held:
                self._dispatcher[execution_id] = address  # it has adopted the execution
            elif execution_id in self.offers:
                ended.append(self.offers[execution_id])
            elif execution_id not in self._acked and execution_id not in self._acked_before:
                self.held[execution_id] = run
                self._dispatcher[execution_id] = address
                fresh.append(run)
        return fresh, ended

    def forget(self, execution_ids: Iterable[int]) -> None:
        """Runs that were taken, and not begun: if they come again, they are new."""
        for execution_id in execution_ids:
            del self.held[execution_id]
            del self._dispatcher[execution_id]

    def cancel(self, execution_ids: tuple[int, ...], reason: str) -> tuple[int, ...]:
        """Returns the runs that are held. An unknown run may be on its way: it will not be begun when it comes."""
        held = []
        for execution_id in execution_ids:
            if execution_id in self.held:
                held.append(execution_id)
            elif not self._has_ended(execution_id):
                self._cancels[execution_id] = reason
        while len(self._cancels) > _CANCELS_KEPT:
            del self._cancels[next(iter(self._cancels))]
        return tuple(held)

    def cancelled(self, execution_id: int) -> str | None:
        """Why a run that has just come must not begin; None: it may."""
        return self._cancels.pop(execution_id, None) if self._cancels else None

    def _has_ended(self, execution_id: int) -> bool:
        return execution_id in self.offers or execution_id in self._acked or execution_id in self._acked_before

    def end(self, results: list[Report], now_ns: int) -> list[Offer]:
        """Turn held runs into offers to the controller that dispatched them last. Drops results of unknown runs."""
        offers = []
        for result in results:
            execution_id = result.execution_id
            if self.held.pop(execution_id, None) is not None:
                offer = Offer(result, self._dispatcher.pop(execution_id), now_ns)
                self.offers[execution_id] = offer
                offers.append(offer)
        return offers

    def ack(self, execution_ids: tuple[int, ...]) -> None:
        for execution_id in execution_ids:
            if self.offers.pop(execution_id, None) is not None:
                self._acked.add(execution_id)
        if len(self._acked) >= _GENERATION:
            self._acked_before, self._acked = self._acked, set()

    def offered_to(self, address: str) -> list[Offer]:
        """Unacknowledged offers to that controller (or, for "", to nobody)."""
        return [offer for offer in self.offers.values() if offer.address == address]

    def stale(self, before_ns: int) -> list[Offer]:
        """Offers that were last made before that time, in the order in which their runs ended."""
        return [offer for offer in self.offers.values() if offer.offered_ns <= before_ns]
