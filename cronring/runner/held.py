"""A run on its way through the runner's children."""

from typing import TYPE_CHECKING, Final, Protocol

from cronring.runner.core.model import CallAnswer, CallId, StopReason
from cronring.runner.tail import Tail, clean
from cronring.schema.execution import Outcome, Report, Run

if TYPE_CHECKING:
    from cronring.runner.quota import Excess


Usage = tuple[int | None, int | None, bool | None]  # CPU (us), peak memory (bytes), whether others shared that
NOT_KNOWN: Final[Usage] = (None, None, None)


class Stop:
    """That a run must end, and since when."""

    __slots__ = ("grace_ns", "message", "reason", "since_ns", "steps", "target")

    def __init__(self, reason: StopReason, message: str, grace_ns: int, since_ns: int) -> None:
        self.reason = reason
        self.message = message
        self.grace_ns = grace_ns
        self.since_ns = since_ns
        self.steps = -1  # of its child, when it was last interrupted
        self.target = 0  # the board's TARGET, once the signal has been sent


class HoldingChild(Protocol):
    """The child that a run is in, as far as a run that must stop is concerned."""

    mode: str
    pid: int

    def progress(self) -> tuple[int, int, int]: ...
    def is_current(self, held: "Held") -> bool: ...
    def has_ended(self, held: "Held") -> bool: ...
    def ask_to_stop(self, held: "Held") -> None: ...
    def interrupt(self, held: "Held") -> None: ...
    def kill(self, reason: str, culprit: "Held | None") -> None: ...
    def answer(self, call: CallId, answer: CallAnswer) -> None: ...


class Held:
    """One run: where it is, what it has printed, and whether it must stop."""

    __slots__ = ("child", "excess", "run", "sent_us", "slot", "stop", "tail")

    def __init__(self, run: Run) -> None:
        self.run = run
        self.child: HoldingChild | None = None  # None: it waits for one
        self.slot = 0
        self.sent_us = 0  # monotonic; when it went to its child
        self.stop: Stop | None = None
        self.excess: Excess | None = None  # it is over a limit, and being killed for it
        self.tail: Tail | None = None

    def write(self, text: str, cut: bool = False) -> None:
        if self.tail is None:
            self.tail = Tail()
        self.tail.write(text, cut)

    def result(
        self,
        outcome: Outcome,
        started_us: int,
        ended_us: int,
        error_type: str = "",
        error_message: str = "",
        next_in_ms: int = 0,
        usage: Usage = NOT_KNOWN,
    ) -> Report:
        """Times are PostgreSQL's, as far as this runner knows it: never before the claim."""
        run = self.run
        started_us = max(started_us, run.claimed_at_us)
        return Report(
            run.execution_id,
            run.job_id,
            run.claimed_at_us,
            outcome,
            started_us,
            max(ended_us, started_us),
            error_type and clean(error_type),
            error_message and clean(error_message),
            self.tail.text() if self.tail is not None else "",
            next_in_ms,
            (),
            "",
            *usage,
        )

    def exceeded(self, excess: "Excess", started_us: int, ended_us: int, usage: Usage = NOT_KNOWN) -> Report:
        """The result of a run that went over a limit."""
        return self.result(excess.outcome, started_us, ended_us, excess.error_type, excess.message, 0, usage)

    def fence(self) -> None:
        """Its child stopped it, as this runner stood still without contact."""
        message = "this runner stood still without contact for so long that it may be taken for lost"
        self.stop = Stop(StopReason.DISCONNECTED, message, 0, 0)

    def stopped(
        self, started_us: int, ended_us: int, detail: str = "", error_type: str = "", next_in_ms: int = 0
    ) -> Report:
        """The result of a run that was asked to stop."""
        assert self.stop is not None
        reason = self.stop.reason
        message = f"{self.stop.message}\n{detail}".strip()
        return self.result(reason.outcome, started_us, ended_us, error_type or reason.error_type, message, next_in_ms)
