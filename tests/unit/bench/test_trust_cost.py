"""bench.trust_cost: what it makes of two clusters' bursts."""

from bench.burst import Burst
from bench.trust_cost import figures, table


def burst(per_second: float, cpu_us: float) -> Burst:
    return Burst(100, 100, 1_000.0, per_second, 5.0, 10.0, 50.0, 90.0, 99.0, cpu_us / 2, cpu_us / 4, cpu_us / 4)


PLAIN = [burst(10_000, 150), burst(8_000, 180), burst(12_000, 130)]
SECURED = [burst(9_500, 165), burst(8_000, 180), burst(6_000, 260)]


def test_ratios_are_of_bursts_that_follow_each_other() -> None:
    assert figures([PLAIN, SECURED]) == {"per_second_ratio": 0.95, "p99_ratio": 1.0, "cpu_ratio": 1.1}


def test_the_table_has_each_round() -> None:
    clusters = [{"cluster": name, "answers": 9, **vars(PLAIN[0])} for name in ("insecure", "secured")]
    rounds = [{"plain": vars(plain), "secured": vars(secured)} for plain, secured in zip(PLAIN, SECURED, strict=True)]
    machine = {"date": "2026-11-24"}
    result = {"name": "trust_cost", "shape": {"jobs": 100}, "machine": machine, "figures": figures([PLAIN, SECURED])}
    said = table(result | {"clusters": clusters, "rounds": rounds})
    assert "0.950 as many runs a second (the goal is 0.95), 1.100 times the CPU" in said
    assert "By rounds: 0.950, 1.000, 0.500." in said
