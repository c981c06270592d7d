"""Ids of traces, by https://www.w3.org/TR/trace-context/."""

import re
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from cronring import Context
from cronring.context import RunFacts
from cronring.trace import trace_id, traceparent

TICK_US: Final = 1_774_742_400_000_000
FACTS: Final = (7, "billing.close", TICK_US)
ANY: Final = st.tuples(st.integers(1, 2**63 - 1), st.text(), st.integers(0, 2**62))
HEADER: Final = re.compile("00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-01")


def test_it_stays_what_it_is() -> None:
    """What an execution of last month was called is found by the same name."""
    assert trace_id(*FACTS) == "1c65640e4cc33c654b8fa87be3feb47f"
    assert traceparent(*FACTS) == "00-1c65640e4cc33c654b8fa87be3feb47f-202ac19f3bebd47a-01"
    run = RunFacts(7, "billing.close", TICK_US, TICK_US + 1, TICK_US + 2, 3, "retry", TICK_US + 4)
    assert Context(run).traceparent == traceparent(*FACTS)


@given(ANY)
def test_it_has_the_form_of_the_standard(facts: tuple[int, str, int]) -> None:
    header = HEADER.fullmatch(traceparent(*facts))
    assert header
    assert header[1] == trace_id(*facts)


def test_no_two_executions_share_one() -> None:
    """Neither attempts, nor jobs, nor a database that begins to count anew."""
    facts = {(number, job, TICK_US + tick) for number in range(1, 9) for job in ("a.b", "a.c") for tick in range(9)}
    headers = [traceparent(*each).split("-") for each in facts]
    traces, spans = {trace for _, trace, _, _ in headers}, {span for _, _, span, _ in headers}
    assert len(traces) == len(spans) == len(facts)
