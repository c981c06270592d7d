"""The table of `bench.doors`."""

from bench.doors import Sample, by_kind, table


def test_a_line_has_reads_and_writes_of_a_door_alone_and_beside_a_herd() -> None:
    case = {
        "door": "REST",
        "alone": by_kind(Sample(1_300, 5.8, 8.3), Sample(400, 21.0, 36.5)),
        "beside": by_kind(Sample(1_200, 6.0, 9.4), Sample(300, 25.0, 48.0)),
    }
    load = {"before": 0.1, "after": 2.0}
    told = table({"name": "doors", "shape": {}, "machine": {"date": "2026-11-28"}, "cases": [case], "load": load})
    head, _, line = told.splitlines()[4:7]
    assert head.count("beside a herd") == 2
    assert line == "| REST | 1,300 | 5.8, 8.3 | 400 | 21, 36.5 | 1,200 | 6, 9.4 | 300 | 25, 48 |"
    assert told.endswith("Load 0.1 before, 2.0 after.")
