from collections import Counter

from cronring.controller.core.model import RunnerInfo
from cronring.controller.core.node.connected_runners import ConnectedRunners, Picker
from cronring.schema.lanes import LaneKind


def _runner(runner_id: str, *deployments: str) -> RunnerInfo:
    return RunnerInfo(runner_id, "host", 1, "1", deployments)


def _pick(picker: Picker, deployment: str) -> str | None:
    place = picker.pick((deployment, LaneKind.ASYNC))
    return None if place is None else place.runner_id


def test_a_batch_is_spread_by_load() -> None:
    runners = ConnectedRunners()
    runners.join(_runner("r1", "d"), held=5)
    runners.join(_runner("r2", "d"), held=0)
    runners.join(_runner("r3", "d", "e"), held=2)
    runners.beat("r3", draining=False, running=4)  # two of them by other controllers
    picker = Picker(runners)
    assert Counter(_pick(picker, "d") for _ in range(15)) == {"r1": 3, "r2": 8, "r3": 4}
    assert _pick(picker, "e") == "r3"
    assert _pick(picker, "unknown") is None


def test_the_draining_and_the_gone_get_nothing() -> None:
    runners = ConnectedRunners()
    runners.join(_runner("r1", "d"), held=0)
    runners.join(_runner("r2", "d"), held=0)
    runners.beat("r1", draining=True, running=0)
    assert _pick(Picker(runners), "d") == "r2"
    runners.leave("r2")
    assert _pick(Picker(runners), "d") is None


def test_a_runner_that_joins_again_hosts_what_it_says_now() -> None:
    runners = ConnectedRunners()
    runners.join(_runner("r1", "old", "old"), held=0)
    runners.join(_runner("r1", "new"), held=3)
    assert _pick(Picker(runners), "old") is None
    assert _pick(Picker(runners), "new") == "r1"
    assert runners.by_id["r1"].load == 3
