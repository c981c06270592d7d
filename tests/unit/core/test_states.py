"""The table of states by itself: whole, consistent, and drawn as it is."""

import runpy
from pathlib import Path

import pytest

from cronring.controller.core.orders.states import HAPPENINGS, ORDERS, TARGETS, Order, State, allowed, refusal, state_of

DOCS = Path(__file__).resolve().parents[3] / "docs"


def test_the_page_has_the_drawing_of_today() -> None:
    script = runpy.run_path(str(DOCS / "make_states.py"))
    page = (DOCS / "control.md").read_text("utf-8")
    assert script["drawn"](page) == page, "run `python docs/make_states.py`"


@pytest.mark.parametrize("order", list(Order))
def test_every_order_has_a_row_and_leads_somewhere(order: Order) -> None:
    table = ORDERS[order]
    assert table
    assert all(targets for targets in table.values())
    assert any(TARGETS[order] in targets or state in targets for state, targets in table.items())


def test_every_state_can_be_reached_and_left() -> None:
    edges = [
        (state, target)
        for table in (*ORDERS.values(), *HAPPENINGS.values())
        for state, targets in table.items()
        for target in targets
        if target is not state
    ]
    assert {target for _, target in edges} == set(State)
    assert {state for state, _ in edges} == set(State)


@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize("state", list(State))
def test_a_refusal_names_both_states_and_what_to_do(order: Order, state: State) -> None:
    if allowed(state, order):
        return
    message = refusal("m.a", state, order)
    assert state.value in message
    assert TARGETS[order].value in message
    assert "`cronring jobs " in message


def test_what_is_cancelled_or_paused_is_that_whatever_else() -> None:
    facts = {"running": True, "has_next_tick": True, "last_outcome": "completed"}
    assert state_of(cancelled=True, paused=True, **facts) is State.CANCELLED  # type: ignore[arg-type]  # facts by name
    assert state_of(cancelled=False, paused=True, **facts) is State.PAUSED  # type: ignore[arg-type]  # facts by name


@pytest.mark.parametrize(
    ("last_outcome", "state"),
    [(None, State.PENDING), ("completed", State.COMPLETED), ("failed", State.FAILED), ("cancelled", State.FAILED)],
)
def test_without_a_tick_to_come_the_last_run_tells(last_outcome: str | None, state: State) -> None:
    assert (
        state_of(cancelled=False, paused=False, running=False, has_next_tick=False, last_outcome=last_outcome) is state
    )


@pytest.mark.parametrize("last_outcome", [None, "completed", "failed"])
def test_a_job_without_a_schedule_of_its_own_is_never_done(last_outcome: str | None) -> None:
    facts = {"cancelled": False, "paused": False, "has_next_tick": False, "last_outcome": last_outcome}
    assert state_of(running=False, by_hand=True, **facts) is State.PENDING  # type: ignore[arg-type]  # facts by name
    assert state_of(running=True, by_hand=True, **facts) is State.RUNNING  # type: ignore[arg-type]  # as above
