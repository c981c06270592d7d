"""Parameters' types as text: what a payload can be held against before anything runs."""

import enum
from typing import Any

import pytest

from cronring.child.describe_types import TypeDump
from cronring.child.payloads import PayloadError, Payloads


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Bits(enum.Flag):
    A = 1
    B = 2


class Lenient(enum.Enum):
    ANY = "any"

    @classmethod
    def _missing_(cls, _: object) -> "Lenient":
        return cls.ANY


class Odd(enum.Enum):
    PAIR = (1, 2)


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (Color, 'Literal["red", "blue"]'),
        (list[Level], "list[Literal[1, 2]]"),
        (Color | None, 'Literal["red", "blue"] | None'),
        (Bits, "Bits"),
        (Lenient, "Lenient"),
        (Odd, "Odd"),
    ],
)
def test_an_enum_is_the_literal_of_its_values(annotation: Any, text: str) -> None:
    assert TypeDump(__name__).text(annotation) == text


def test_a_run_gets_the_member() -> None:
    assert Payloads(Color, {}).read('"red"') is Color.RED
    assert Payloads(Level, {}).read("2") is Level.HIGH
    with pytest.raises(PayloadError, match="green"):
        Payloads(Color, {}).read('"green"')
