"""Calls of verbs through random failures: each verb gets one answer by its deadline, and a true one."""

import heapq
import itertools
import random
from collections.abc import Callable
from functools import partial

import pytest

from cronring.runner.core.calls import UNAVAILABLE
from cronring.runner.core.effects import AnswerVerb, SendCall
from cronring.runner.core.events import LinkDown, LinkOpened, LinkUp, RunnerWoke, VerbAnswered, VerbAsked
from cronring.runner.core.model import CallAnswer, CallId
from cronring.runner.core.settings import SECOND_NS
from tests.drawing import seed as drawn
from tests.unit.runner.world import World, make_run

ADDRESSES = ("a", "b", "c")
CALLS = 30
LASTS_S = 60
DONE = CallAnswer('"m.v:x"')
AWAY = CallAnswer(reason="DATABASE_AWAY", problem="PostgreSQL is away", again=True)
TAKES_S = 12.0  # at most, until a controller has given a call up


class Walk:
    """Controllers that lose what they are asked, do it late, do it and die, or do it and say so."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.world = World(*ADDRESSES)
        self.world.up(*ADDRESSES)
        self.world.dispatch("a", make_run(1, finish=True))
        self.down: set[str] = set()
        self.done: dict[CallId, int] = {}  # by call: when its change was committed
        self.sent: set[CallId] = set()
        self.answered: dict[CallId, CallAnswer] = {}
        self.ends_ns: dict[CallId, int] = {}
        self._seen = len(self.world.effects)
        self._later: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def after(self, seconds: float, what: Callable[[], None]) -> None:
        at_ns = self.world.now_ns + int(seconds * SECOND_NS)
        heapq.heappush(self._later, (at_ns, next(self._order), what))

    def run(self) -> None:
        for number in range(1, CALLS + 1):
            self.after(self.chance.uniform(0, LASTS_S), partial(self._ask, CallId(1, number)))
        for _ in range(30):
            self.after(self.chance.uniform(0, LASTS_S), self._turn)
        until_ns = self.world.now_ns + 200 * SECOND_NS
        while (
            at_ns := min(self.world.core.next_deadline(), self._later[0][0] if self._later else until_ns)
        ) < until_ns:
            self.world.now_ns = max(self.world.now_ns, at_ns)
            if self._later and self._later[0][0] <= at_ns:
                heapq.heappop(self._later)[2]()
            else:
                self.world.step(RunnerWoke())
            self._look()

    def _ask(self, call: CallId) -> None:
        patience_ms = self.chance.choice([500, 3_000, 30_000, 120_000])
        self.ends_ns[call] = self.world.now_ns + patience_ms * 1_000_000
        self.world.step(VerbAsked(call, b"", patience_ms))

    def _turn(self) -> None:
        address = self.chance.choice(ADDRESSES)
        if address in self.down:
            self.down.discard(address)
            self.world.step(LinkOpened(address, self.world.now_ns))
            self.world.step(LinkUp(address, address, (), 1_000, 8_000))
        else:
            self.down.add(address)
            self.world.step(LinkDown(address, "killed"))

    def _look(self) -> None:
        """What the core has sent or told since."""
        while self._seen < len(self.world.effects):
            effect = self.world.effects[self._seen]
            self._seen += 1
            if isinstance(effect, SendCall):
                self._take(effect.address, effect.call)
            elif isinstance(effect, AnswerVerb):
                assert effect.call not in self.answered, "a verb is answered once"
                assert self.world.now_ns <= self.ends_ns[effect.call] + SECOND_NS // 100, "by its deadline"
                self.answered[effect.call] = effect.answer
                if not effect.answer.reason:
                    assert effect.call in self.done, "who is told so had it done"

    def _take(self, address: str, call: CallId) -> None:
        assert address not in self.down
        self.sent.add(call)
        match self.chance.randrange(6):
            case 0:
                return  # lost on the way
            case 1:
                self.after(0.01, lambda: self._answer(address, call, AWAY))
            case 2:
                self.after(self.chance.uniform(0, TAKES_S), lambda: self._commit(call))  # and nobody says so
            case _:
                self.after(self.chance.choice([0.01, 1, 6]), lambda: self._commit_and_say(address, call))

    def _commit(self, call: CallId) -> None:
        self.done.setdefault(call, self.world.now_ns)  # the store's part: once

    def _commit_and_say(self, address: str, call: CallId) -> None:
        self._commit(call)
        self._answer(address, call, DONE)

    def _answer(self, address: str, call: CallId, answer: CallAnswer) -> None:
        if address not in self.down:
            self.world.step(VerbAnswered(address, call, answer))


@pytest.mark.parametrize("number", range(40))
def test_every_call_has_one_true_answer_by_its_deadline(number: int) -> None:
    walk = Walk(drawn(number))
    walk.run()
    assert set(walk.answered) == set(walk.ends_ns), "nobody waits for ever"
    given_up = {call: answer for call, answer in walk.answered.items() if answer.reason}
    assert all(answer.reason == UNAVAILABLE for answer in given_up.values())
    for call, answer in given_up.items():
        if "it was not done" in answer.problem:
            assert call not in walk.sent
            assert call not in walk.done
    assert len(given_up) < CALLS, "some get through"
