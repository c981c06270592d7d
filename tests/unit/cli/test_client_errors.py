"""What a refused request says."""

from cronring.cli.flags import refused
from cronring.client.errors import Invalid


def test_a_single_fault_is_said_once() -> None:
    assert str(Invalid("it is invalid: name: is empty", [("name", "is empty")])) == "it is invalid: name: is empty"


def test_faults_are_listed_where_the_message_lacks_them_or_has_several() -> None:
    assert str(Invalid("it is invalid", [("name", "is empty")])) == "it is invalid\n  name: is empty"
    assert str(Invalid("no: a: x; b: y", [("a", "x"), ("b", "y")])) == "no: a: x; b: y\n  a: x\n  b: y"


def test_faults_that_had_no_room_are_counted_by_what_the_controller_says_of_them() -> None:
    """Not by its words, which somebody's text may look like."""
    wrong = [("name", "it is empty (the first 9 of 99 problems)")]
    assert refused(Invalid("no (the first 9 of 99 problems)", wrong)).message.startswith("name: it is empty")
    assert refused(Invalid("no", wrong * 2)).message.startswith("2 values are wrong:\n  name: ")
    assert refused(Invalid("no", wrong * 2, 5_000)).message.startswith("5000 values are wrong; the first of them:\n  ")
