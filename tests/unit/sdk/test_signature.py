"""What a verb takes, told by its code where that says all."""

import functools
import inspect

import pytest

from cronring.child.signature import parameters


async def nothing() -> None: ...


async def by_position(context: object) -> None: ...


async def by_name(*, payload: int = 0) -> None: ...


async def anything(*positional: object) -> None: ...


async def anything_named(**named: object) -> None: ...


@functools.wraps(by_position)
async def wrapper() -> None: ...


class Callable:
    async def __call__(self, context: object) -> None: ...


@pytest.mark.parametrize("function", [nothing, by_position, by_name, anything, anything_named, wrapper, Callable()])
def test_parameters_are_those_that_inspect_finds(function):
    assert parameters(function) == list(inspect.signature(function).parameters.values())


def test_nobody_inspects_a_function_that_takes_nothing(monkeypatch):
    monkeypatch.setattr(inspect, "signature", None)
    assert parameters(nothing) == []
