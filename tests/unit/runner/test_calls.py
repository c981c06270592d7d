"""Whom a runner asks for what its verbs want of jobs, and what it tells them."""

from cronring.runner.core.calls import CALLS_MAX, SENT_MAX, UNAVAILABLE
from cronring.runner.core.effects import AnswerVerb, SendCall
from cronring.runner.core.events import BeatAcked, LinkDown, RunsEnded, VerbAnswered, VerbAsked
from cronring.runner.core.model import CallAnswer, CallId
from tests.unit.runner.world import World, make_result, make_run

DONE = CallAnswer('"m.v:x"')
REFUSED = CallAnswer(reason="CONFLICT", problem="there is another job")
AWAY = CallAnswer(reason="DATABASE_AWAY", problem="PostgreSQL can't be reached", again=True)
PATIENCE_MS = 30_000


def world_of(*addresses: str) -> World:
    world = World(*addresses)
    world.up(*addresses)
    world.dispatch(addresses[0], make_run(1, finish=True))
    world.effects.clear()
    return world


def ask(world: World, number: int = 1, patience_ms: int = PATIENCE_MS) -> CallId:
    call = CallId(1, number)
    world.step(VerbAsked(call, b"request", patience_ms))
    return call


def asked(world: World) -> list[str]:
    return [sent.address for sent in world.of(SendCall)]


def answers(world: World) -> list[CallAnswer]:
    return [told.answer for told in world.of(AnswerVerb)]


def test_a_call_goes_to_one_controller_and_its_answer_to_the_verb_once() -> None:
    world = world_of("a", "b")
    call = ask(world)
    assert world.of(SendCall) == [SendCall("a", call, b"request")]
    world.step(VerbAnswered("a", call, DONE))
    world.step(VerbAnswered("a", call, DONE))
    world.pass_s(60)
    assert world.of(AnswerVerb) == [AnswerVerb(call, DONE)]
    assert asked(world) == ["a"]


def test_what_is_refused_is_told_and_not_asked_again() -> None:
    world = world_of("a", "b")
    world.step(VerbAnswered("a", ask(world), REFUSED))
    world.pass_s(60)
    assert answers(world) == [REFUSED]
    assert asked(world) == ["a"]


def test_when_its_controller_is_gone_another_is_asked_at_once() -> None:
    world = world_of("a", "b")
    call = ask(world)
    world.step(LinkDown("a", "killed"))
    assert asked(world) == ["a", "b"]
    world.step(VerbAnswered("b", call, DONE))
    assert answers(world) == [DONE]


def test_with_one_controller_it_waits_until_that_is_back() -> None:
    world = world_of("a")
    call = ask(world)
    world.step(LinkDown("a", "killed"))
    world.pass_s(3)
    assert asked(world) == ["a"]
    world.up("a")
    assert asked(world) == ["a", "a"]
    world.step(VerbAnswered("a", call, DONE))
    assert answers(world) == [DONE]


def test_of_one_that_is_silent_another_is_asked_after_5_s_and_the_first_may_still_say_that_it_was_done() -> None:
    world = world_of("a", "b")
    call = ask(world)
    world.pass_s(4.9)
    assert asked(world) == ["a"]
    world.pass_s(0.2)
    assert asked(world) == ["a", "b"]
    world.step(VerbAnswered("a", call, REFUSED))
    assert answers(world) == [], "b is at it, and may be doing it"
    world.step(VerbAnswered("a", call, DONE))
    assert answers(world) == [DONE]


def test_while_postgresql_is_away_it_is_asked_again_with_pauses_until_the_verb_s_deadline() -> None:
    world = world_of("a")
    call, heard = ask(world), 0
    for _ in range(100):
        world.pass_s(0.25)
        if len(asked(world)) > heard:
            heard += 1
            world.step(VerbAnswered("a", call, AWAY))
    assert 10 < len(asked(world)) < 25
    world.pass_s(10)
    (told,) = answers(world)
    assert told.reason == UNAVAILABLE
    assert "PostgreSQL can't be reached; whether it was done is not known" in told.problem


def test_what_nobody_could_be_asked_for_was_not_done() -> None:
    world = world_of("a")
    world.step(LinkDown("a", "killed"))
    ask(world)
    before = len(world.effects)
    world.pass_s(29)
    assert answers(world) == []
    assert len([effect for effect in world.effects[before:] if isinstance(effect, SendCall)]) == 0
    world.pass_s(2)
    (told,) = answers(world)
    assert told.reason == UNAVAILABLE
    assert "no controller that reaches PostgreSQL is connected" in told.problem
    assert "it was not done; ask for it again later" in told.problem


def test_waiting_calls_do_not_make_the_runner_spin() -> None:
    """One that can't be sent is looked at when something happens, or at its end."""
    world = world_of("a")
    world.step(LinkDown("a", "killed"))
    ask(world)
    deadline_ns = world.core.next_deadline()
    assert deadline_ns > world.now_ns
    world.pass_s(5)
    assert world.core.next_deadline() > world.now_ns - 1


def test_one_that_sees_no_database_is_not_asked_if_another_does() -> None:
    world = world_of("a", "b")
    world.blind.add("a")
    world.step(BeatAcked("a", 0, False, False, ()))
    world.pass_s(3)
    world.effects.clear()
    ask(world)
    assert asked(world) == ["b"]


def test_when_the_run_has_ended_nobody_waits_any_more() -> None:
    world = world_of("a")
    call = ask(world)
    world.step(RunsEnded([make_result(1)]))
    world.effects.clear()
    world.step(VerbAnswered("a", call, DONE))
    world.step(LinkDown("a", "killed"))
    world.pass_s(60)
    assert world.of(SendCall) == []
    assert world.of(AnswerVerb) == []


def test_many_calls_go_out_a_few_at_a_time_and_beyond_a_bound_they_are_refused() -> None:
    world = world_of("a")
    calls = [ask(world, number) for number in range(1, CALLS_MAX + 2)]
    assert [sent.call for sent in world.of(SendCall)] == calls[:SENT_MAX]
    (refused,) = world.of(AnswerVerb)
    assert (refused.call, refused.answer.reason) == (calls[-1], "TOO_MANY")
    world.step(VerbAnswered("a", calls[0], DONE))
    assert world.of(SendCall)[-1].call == calls[SENT_MAX]


def test_calls_are_spread_over_controllers() -> None:
    world = world_of("a", "b")
    for number in range(1, 5):
        ask(world, number)
    assert sorted(asked(world)) == ["a", "a", "b", "b"]
