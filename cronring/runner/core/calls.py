"""What verbs have asked for, until a controller has answered. docs/decisions/0098

The runner may ask several controllers for one call, one after the other. The call is done once all the same.
"""

from collections.abc import Iterable, Sequence

from cronring.runner.core.effects import AnswerVerb, SendCall
from cronring.runner.core.events import VerbAnswered, VerbAsked
from cronring.runner.core.model import CallAnswer, CallId
from cronring.runner.core.settings import MS_NS, SECOND_NS

CALLS_MAX = 1_000  # that wait, of all runs
SENT_MAX = 64  # to one controller; the others wait here
SILENCE_NS = 5 * SECOND_NS  # of a controller, after which another is asked
PAUSE_FIRST_NS = 200 * MS_NS  # before what was not done is asked for again
PAUSE_MAX_NS = 2 * SECOND_NS
UNAVAILABLE = "UNAVAILABLE"
TOO_MANY = "TOO_MANY"


class _Call:
    """`address`: the controller that is asked now; "": none. `due_ns`: when to ask the next one."""

    __slots__ = ("address", "asked", "avoid", "due_ns", "ends_ns", "pause_ns", "problem", "request")

    def __init__(self, request: bytes, now_ns: int, ends_ns: int) -> None:
        self.request = request
        self.address = self.avoid = ""
        self.due_ns = now_ns
        self.ends_ns = ends_ns
        self.pause_ns = PAUSE_FIRST_NS
        self.asked = False  # a controller was asked, so the call may have been done
        self.problem = "no controller that reaches PostgreSQL is connected to this runner"


class OpenCalls:
    """All calls of a runner's verbs."""

    def __init__(self) -> None:
        self._calls: dict[CallId, _Call] = {}
        self._answers: list[AnswerVerb] = []
        self._settled_ns = 0

    def __bool__(self) -> bool:
        """Calls wait, or answers are to be handed to their verbs."""
        return bool(self._calls or self._answers)

    def take(self, event: VerbAsked | VerbAnswered, now_ns: int) -> None:
        """A verb wants something, or a controller has answered."""
        if isinstance(event, VerbAsked):
            self._ask(event.call, event.request, event.patience_ms, now_ns)
        else:
            self._answered(event.address, event.call, event.answer, now_ns)

    def _ask(self, call: CallId, request: bytes, patience_ms: int, now_ns: int) -> None:
        if len(self._calls) >= CALLS_MAX:
            problem = f"{CALLS_MAX} calls of this runner's verbs wait already: make fewer at once; it was not done"
            self._answers.append(AnswerVerb(call, CallAnswer(reason=TOO_MANY, problem=problem)))
        elif call not in self._calls:
            self._calls[call] = _Call(request, now_ns, now_ns + patience_ms * MS_NS)

    def _answered(self, address: str, call: CallId, answer: CallAnswer, now_ns: int) -> None:
        """A late answer counts if it says that the call was done. Refusals count from the controller asked last."""
        waiting = self._calls.get(call)
        if waiting is None or (answer.reason and waiting.address != address):
            return
        if not answer.again:
            del self._calls[call]
            self._answers.append(AnswerVerb(call, answer))
        else:
            waiting.problem = answer.problem
            _ask_later(waiting, now_ns + waiting.pause_ns)
            waiting.pause_ns = min(waiting.pause_ns * 2, PAUSE_MAX_NS)

    def link_down(self, address: str, now_ns: int) -> None:
        """What was asked there is asked elsewhere at once, or there again."""
        for waiting in self._calls.values():
            if waiting.address == address:
                waiting.problem = "the controller that was asked is gone"
                _ask_later(waiting, now_ns)

    def ended(self, execution_ids: Iterable[int]) -> None:
        """Nobody waits for their answers any more."""
        over = set(execution_ids)
        for call in [call for call in self._calls if call.execution_id in over]:
            del self._calls[call]

    def settle(self, takers: Sequence[str], now_ns: int) -> list[SendCall | AnswerVerb]:
        """What is due now. `takers`: who can do it, as far as this runner knows."""
        told: list[SendCall | AnswerVerb] = [*self._answers]
        self._answers.clear()
        self._settled_ns = now_ns
        sent = dict.fromkeys(takers, 0)
        for waiting in self._calls.values():
            if waiting.address in sent:
                sent[waiting.address] += 1
        for call, waiting in list(self._calls.items()):
            if now_ns >= waiting.ends_ns:
                del self._calls[call]
                told.append(AnswerVerb(call, _given_up(waiting)))
                continue
            if waiting.address and now_ns >= waiting.due_ns:
                waiting.problem = "the controller that was asked is silent"
                _ask_later(waiting, now_ns)
            if not waiting.address and now_ns >= waiting.due_ns:
                free = [address for address in takers if sent[address] < SENT_MAX]
                free = [address for address in free if address != waiting.avoid] or free
                if free:
                    waiting.address = min(free, key=sent.__getitem__)
                    waiting.due_ns, waiting.asked = now_ns + SILENCE_NS, True
                    sent[waiting.address] += 1
                    told.append(SendCall(waiting.address, call, waiting.request))
        return told

    def next_deadline(self) -> int | None:
        """Monotonic ns; None: nothing waits. A call that found no controller to ask waits for one to connect."""
        return min((self._next_ns(waiting) for waiting in self._calls.values()), default=None)

    def _next_ns(self, waiting: _Call) -> int:
        was_due = waiting.due_ns <= self._settled_ns
        return waiting.ends_ns if was_due else min(waiting.due_ns, waiting.ends_ns)


def _ask_later(waiting: _Call, at_ns: int) -> None:
    waiting.avoid, waiting.address, waiting.due_ns = waiting.address, "", at_ns


def _given_up(waiting: _Call) -> CallAnswer:
    done = (
        "whether it was done is not known; create, update, pause, resume and delete may be asked for again, and run "
        "may then run twice"
        if waiting.asked
        else "it was not done; ask for it again later"
    )
    return CallAnswer(reason=UNAVAILABLE, problem=f"{waiting.problem}; {done}", again=waiting.asked)
