"""The rows of rows_consumers.py."""

from collections import Counter
from typing import Any

from tests.faults.queue_load import problems
from tests.faults.trying import long, short

test_short, test_long = short("consumers"), long("consumers")


def begun(number: int, lease: int = 1, workspace: str = "w1") -> dict[str, Any]:
    return {"event": "begun", "number": number, "lease": lease, "workspace": workspace}


def test_its_judge_finds_what_must_not_be() -> None:
    put = [{"event": event, "numbers": [1, 2, 3]} for event in ("putting", "put")]
    once = Counter([1, 2, 3])
    assert problems([*put, begun(1), begun(2), begun(2, 2), begun(3, 2)], once) == []
    assert problems([*put, begun(1)], Counter([1, 3])) == ["1 messages were lost, such as 2"]
    assert problems(put, once + Counter([2])) == ["1 messages were done twice, such as 2"]
    assert problems(put, once + Counter([9])) == ["1 messages were done that nobody put, such as 9"]
    assert problems([*put, begun(2), begun(2)], once) == ["1 messages were begun twice under one lease, such as (2, 1)"]
    assert problems([*put, begun(2), begun(1)], once) == ["w1: 1 was begun after 2"]
