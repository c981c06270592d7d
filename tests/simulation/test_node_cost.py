from tests.simulation.node_cost import SECONDS, Bench


def test_effects_are_by_batch_and_not_by_execution() -> None:
    """The proxy of speed that does not depend on the machine: 2,000 due at once are six claims, of which the first
    two are small (50 and 200), and as many ends."""
    cost = Bench(2_000).run()
    assert cost.executions >= 2_000 * (SECONDS - 1)
    batches = cost.executions / 500
    assert cost.effects["Claim"] <= batches * 1.9
    assert cost.effects["End"] <= batches * 2.5  # reports come by runner
    assert cost.effects["Dispatch"] <= 2 * batches * 1.9
    assert cost.effects["AckReports"] <= cost.effects["End"] * 2
    assert sum(cost.effects.values()) < 15 * batches
