"""Jobs that run after others, on virtual clusters."""

from pathlib import Path

from cronring.testing import ClusterFactory

FOLLOWER = Path(__file__).with_name("follower.py")


def test_a_chain_follows_each_tick_that_succeeds(cronring_cluster: ClusterFactory) -> None:
    cluster = cronring_cluster(FOLLOWER, start="2026-01-15")
    cluster.run_until("2026-05-15")
    told = [(each.job.partition(".")[2], f"{each.tick:%m-%d %H}", each.trigger, each.outcome)
            for each in cluster.executions()]  # fmt: skip
    chain = [("report", "after"), ("send", "after")]
    february, march, april, may = (f"{month:02}-01 06" for month in range(2, 6))
    assert told == [
        ("close_month", february, "schedule", "completed"),
        *((job, february, trigger, "completed") for job, trigger in chain),
        ("close_month", march, "schedule", "failed"),
        ("close_month", march, "retry", "completed"),
        *((job, march, trigger, "completed") for job, trigger in chain),
        ("close_month", april, "schedule", "failed"),
        ("close_month", april, "retry", "failed"),
        ("close_month", may, "schedule", "completed"),
        *((job, may, trigger, "completed") for job, trigger in chain),
    ]
    by_tick = {(each.job, each.tick): each for each in cluster.executions() if each.outcome == "completed"}
    for (job, tick), each in by_tick.items():
        if job == "follower.report":
            ended = by_tick["follower.close_month", tick].ended
            assert ended is not None
            assert each.started is not None
            assert 0 <= (each.started - ended).total_seconds() < 1


def test_what_is_triggered_by_hand_is_not_followed(cronring_cluster: ClusterFactory) -> None:
    cluster = cronring_cluster(FOLLOWER, start="2026-05-02")
    cluster.trigger("close_month")
    cluster.trigger("report")
    cluster.run_for("1h")
    assert [(each.job, each.trigger) for each in cluster.executions()] == [
        ("follower.close_month", "manual"),
        ("follower.report", "manual"),
    ]


def test_a_paused_follower_makes_up_for_what_it_has_missed(cronring_cluster: ClusterFactory) -> None:
    cluster = cronring_cluster(FOLLOWER, start="2026-05-02")
    cluster.pause("report")
    cluster.run_until("2026-07-15")
    assert [each.job for each in cluster.executions()] == ["follower.close_month"] * 2
    cluster.resume("report")
    cluster.run_for("1h")
    assert [f"{each.tick:%m-%d}" for each in cluster.executions("report")] == ["06-01", "07-01"]
    assert len(cluster.executions("send")) == 2


def test_followers_wait_for_an_outage_to_end(cronring_cluster: ClusterFactory) -> None:
    cluster = cronring_cluster(FOLLOWER, start="2026-05-02")
    cluster.duration("close_month", "2m")
    cluster.outage("database", "2h", start="2026-06-01T06:01")
    cluster.run_until("2026-06-02")
    assert [(each.job, f"{each.tick:%m-%d %H}", each.outcome) for each in cluster.executions()][-2:] == [
        ("follower.report", "06-01 06", "completed"),
        ("follower.send", "06-01 06", "completed"),
    ]
