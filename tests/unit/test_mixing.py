from tests.mixing import LONGEST, ROOT, mixed, spread


def test_the_few_are_at_even_distances_and_none_is_left_to_the_end() -> None:
    assert spread(["a", "b"], [1, 2, 3, 4]) == ["a", 1, 2, "b", 3, 4]
    assert spread(["a", "b", "c", "d"], list(range(10)))[-4:] == [6, 7, 8, 9]
    assert spread([], [1, 2]) == [1, 2]
    assert spread(["a", "b"], []) == ["a", "b"]


def test_what_waits_is_spread_among_what_computes() -> None:
    unit = [ROOT / "unit" / f"test_{name}.py" for name in "abcd"]
    acceptance, faults = ROOT / "acceptance" / "test_x.py", ROOT / "faults" / "test_y.py"
    assert mixed([acceptance, faults, *unit]) == [faults, *unit[:2], acceptance, *unit[2:]]


def test_the_longest_come_first_of_all_that_wait() -> None:
    longest = [ROOT / name for name in LONGEST]
    assert [file for file in longest if not file.is_file()] == []
    others = [ROOT / "faults" / "test_y.py", ROOT / "unit" / "test_a.py"]
    found = mixed([*others, *reversed(longest)])
    assert [file for file in found if file in longest] == longest
    assert found.index(longest[-1]) < found.index(others[0])


def test_attacks_wait_as_well() -> None:
    unit = [ROOT / "unit" / f"test_{name}.py" for name in "ab"]
    attack = ROOT / "attacks" / "test_x.py"
    assert mixed([*unit, attack]) == [attack, *unit]
