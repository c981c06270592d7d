"""bench.idle: one small run."""

from bench.idle import LINES, Options, idle, table


def test_a_small_run_measures_its_size() -> None:
    result = idle(Options(sizes=(150,), controllers=1, quiet_s=1.5))
    (found,) = result["sizes"]
    assert set(result["figures"]) == {f"150_jobs_{line.name}" for line in LINES if line.figure}
    assert 0 < found["ready_s"] <= found["window_s"]
    assert found["per_s"]["RenewLease"] > 0
    assert not {"ClaimDeliveries", "TakeNotifier", "BEGIN"} & found["per_s"].keys(), "there are no webhooks"
    assert found["controller_rss_mib"] > 10
    assert "150 jobs" in table(result)
