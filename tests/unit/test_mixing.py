from tests.mixing import ROOT, mixed, spread


def test_the_few_are_at_even_distances() -> None:
    assert spread(["a", "b"], [1, 2, 3, 4]) == ["a", 1, 2, "b", 3, 4]
    assert spread([], [1, 2]) == [1, 2]
    assert spread(["a", "b"], []) == ["a", "b"]


def test_what_waits_is_spread_among_what_computes() -> None:
    unit = [ROOT / "unit" / f"test_{name}.py" for name in "abcd"]
    acceptance, faults = ROOT / "acceptance" / "test_x.py", ROOT / "faults" / "test_y.py"
    assert mixed([acceptance, faults, *unit]) == [faults, *unit[:2], acceptance, *unit[2:]]


def test_attacks_wait_as_well() -> None:
    unit = [ROOT / "unit" / f"test_{name}.py" for name in "ab"]
    attack = ROOT / "attacks" / "test_x.py"
    assert mixed([*unit, attack]) == [attack, *unit]
