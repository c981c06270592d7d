"""What a refused request says."""

from cronring.client.errors import Invalid


def test_a_single_fault_is_said_once() -> None:
    assert str(Invalid("it is invalid: name: is empty", [("name", "is empty")])) == "it is invalid: name: is empty"


def test_faults_are_listed_where_the_message_lacks_them_or_has_several() -> None:
    assert str(Invalid("it is invalid", [("name", "is empty")])) == "it is invalid\n  name: is empty"
    assert str(Invalid("no: a: x; b: y", [("a", "x"), ("b", "y")])) == "no: a: x; b: y\n  a: x\n  b: y"
