"""An activation that waits for its claim."""

from cronring.controller.core import ticks
from cronring.controller.core.model import Activation


class WaitingActivation:
    """One activation that this controller knows of. `busy`: how often it could not be claimed in a row."""

    __slots__ = ("activation", "busy", "limit", "own", "queued")

    def __init__(self, activation: Activation, own: bool) -> None:
        self.activation = activation
        self.own = own  # made here
        self.busy = 0
        self.limit: int | None = None  # that has no place for it
        self.queued = 0  # see Places

    @property
    def share(self) -> str:
        """Whose it is, as of its job."""
        return self.activation.job.share

    @property
    def rank_us(self) -> int:
        """As of an entry of the window."""
        activation = self.activation
        return activation.run_at - ticks.priority(activation.job, activation.trigger) * ticks.SECOND_US
