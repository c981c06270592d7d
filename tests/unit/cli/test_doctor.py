"""The rules about what all controllers say together, by a table of examples; and exit codes where nobody knows."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from cronring.cli.doctor import members
from cronring.cli.doctor.gather import settings_of
from cronring.client.doctor import ControllerReport, NoReport, SeenMember
from cronring.controller.core.doctor.finding import Finding, Verdict
from cronring.controller.core.settings import ClusterSettings
from tests.support.cluster import free_port
from tests.unit.cli.conftest import Cronring
from tests.unit.cli.fake_api import FakeApi

OK, WARNING, UNCHECKED, PROBLEM = Verdict.OK, Verdict.WARNING, Verdict.UNCHECKED, Verdict.PROBLEM
NAMES = ("a", "b", "c")


def member(name: str, status: str = "alive", unreachable: str = "") -> SeenMember:
    return SeenMember(name, f"{name}:7400", status, unreachable)


def report(name: str, **fields: Any) -> ControllerReport:
    values: dict[str, Any] = {
        "address": f"{name}:7400", "id": name, "grpc_address": f"{name}:7400", "version": "0.1.0", "not_ready": "",
        "draining": False, "in_drill": False,
        "database_ok": True, "lease_valid": True, "lease_left_ms": 3_000, "lease_held_ms": 60_000,
        "database_time": datetime(2026, 11, 22, tzinfo=UTC), "clock_error_us": 300, "wall_clock_offset_us": 500,
        "clock_steps": 0, "ring_digest": "d1", "ring_members": NAMES, "members": tuple(map(member, NAMES)), "health": 0,
        "queues": {"held": 2, "ends_pending": 0}, "settings": {"lease_ms": "5000"}, "runners": ("r1",),
        "zone_data": "2026.6",
    }  # fmt: skip
    return ControllerReport(**(values | fields))


def three(**fields_of_c: Any) -> list[ControllerReport]:
    return [report("a"), report("b"), report("c", **fields_of_c)]


SILENT = NoReport("c:7400", "no answer within 3s")
TWO = [report("a"), report("b")]
DEAD = [report(n, members=(member("a"), member("b"), member("c", "dead"))) for n in ("a", "b")]

EXAMPLES: list[tuple[Callable[[], Finding], Verdict, str]] = [
    (lambda: members.check_answers(three(), []), OK, "3 answered: a, b, c"),
    (lambda: members.check_answers(TWO, [SILENT]), PROBLEM, "no answer at c:7400 (c): no answer within 3s"),
    (lambda: members.check_answers(DEAD, [SILENT]), PROBLEM, "the others hold it for dead"),
    (lambda: members.check_answers([], []), PROBLEM, "there is none"),
    (lambda: members.check_answers(TWO, [NoReport("c:7400", "UNIMPLEMENTED", answered=True)]), UNCHECKED, "c:7400"),
    (lambda: members.check_zone_data(three(), "2026.6"), OK, "all go by tzdata 2026.6"),
    (lambda: members.check_zone_data(three(zone_data="2026.7"), "2026.6"), WARNING, "2026.6: a, b | 2026.7: c"),
    (lambda: members.check_zone_data(three(zone_data=""), "2026.6"), WARNING, "an unknown version: c"),
    (lambda: members.check_zone_data(three(), "2026.7"), WARNING, "go by tzdata 2026.6, this program by 2026.7"),
    (lambda: members.check_ring(three()), OK, "all agree on d1 of 3 members"),
    (lambda: members.check_ring(three(ring_digest="d2", ring_members=("c",))), PROBLEM, "a, b: d1 of 3 | c: d2 of 1"),
    (lambda: members.check_ring(TWO), PROBLEM, "c owns slots and did not answer"),
    (lambda: members.check_ring([report("a", ring_members=("b",)), report("b", ring_members=("b",))]), PROBLEM,
     "a is not on the ring of a, b"),
    (lambda: members.check_ring([report("a", ring_members=("b",), draining=True), report("b", ring_members=("b",))]),
     OK, ""),
    (lambda: members.check_peers(three()), OK, "6 ways"),
    (lambda: members.check_peers([report("a", members=(member("a"),))]), OK, "only one"),
    (lambda: members.check_peers(three(members=(member("a", unreachable="no answer within 1s"), member("c")))),
     PROBLEM,
     "c can't reach a at a:7400: no answer within 1s"),
    (lambda: members.check_peers(three(members=(member("a", "suspect"), member("c")))), WARNING, "c suspects a"),
    (lambda: members.check_leases(three(lease_held_ms=4_000)), OK, "without a gap for 4s"),
    (lambda: members.check_leases(three(lease_valid=False, not_ready="the lease is not valid")),
     PROBLEM, "c claims nothing"),
    (lambda: members.check_leases(three(database_ok=False)), PROBLEM, "c can't reach PostgreSQL"),
    (lambda: members.check_leases(three(in_drill=True)), WARNING, "c is in a drill"),
    (lambda: members.check_leases(three(draining=True, not_ready="draining")), WARNING, "c is draining"),
    (lambda: members.check_clocks(three()), OK, "within 0.5ms"),
    (lambda: members.check_clocks(three(wall_clock_offset_us=-60_000_000)), WARNING, "c's host is -1m off"),
    (lambda: members.check_clocks(three(clock_error_us=250_000)), WARNING, "only to 250ms"),
    (lambda: members.check_clocks(three(clock_steps=2)), WARNING, "set 2 times"),
    (lambda: members.check_clocks(three(database_time=None, wall_clock_offset_us=9_000_000)), OK, ""),
    (lambda: members.check_versions(three(), "0.1.0"), OK, "all are 0.1.0"),
    (lambda: members.check_versions(three(version="0.2.0"), "0.1.0"), WARNING, "0.1.0: a, b | 0.2.0: c"),
    (lambda: members.check_versions(three(), "0.3.0"), WARNING, "this program of 0.3.0"),
    (lambda: members.check_settings(three()), OK, "equal on all"),
    (lambda: members.check_settings(three(settings={"lease_ms": "9000"})),
     PROBLEM, "lease_ms differs (5000: a, b | 9000: c)"),
    (lambda: members.check_settings(three(settings={"lease_ms": "5000", "new_ms": "1"})), OK, ""),
    (lambda: members.check_queues(three()), OK, "6 executions are held"),
    (lambda: members.check_queues(three(queues={"ends_pending": 20_000})), WARNING, "c: 20,000 ends pending"),
    (lambda: members.check_queues(three(health=6)), WARNING, "local health 6 of 8"),
    (lambda: members.check_certificates(three()), OK, "none: a, b, c run with --insecure"),
    (lambda: members.check_certificates(three(certificate_left_ms=-60_000)), PROBLEM, "of c ended 1m ago"),
    (lambda: members.check_certificates(three(certificate_left_ms=3_600_000)), PROBLEM, "of c ends in 1h"),
    (lambda: members.check_certificates(three(certificate_left_ms=5 * 86_400_000)), WARNING, "of c ends in 5d"),
    (lambda: members.check_certificates(three(certificate_problem="no PEM")), PROBLEM, "c can't take what is"),
    (lambda: members.check_issuers(three()), OK, "keys are there"),
    (lambda: members.check_issuers(three(issuer_problem="corp: refused")), WARNING, "c can't fetch keys: corp"),
    (lambda: members.check_secrets_keys(three()), OK, "nobody has one"),
    (lambda: members.check_secrets_keys([report("a", secrets_key="k1")]), OK, "all encrypt by k1"),
    (lambda: members.check_secrets_keys(three(secrets_key="k1")), WARNING, "a by none, b by none, c by k1"),
    (lambda: members.check_secrets_keys(three(secrets_problem="lacks k1")), PROBLEM, "c: lacks k1"),
    (lambda: members.check_streams(three()), OK, "1 runners"),
    (lambda: members.check_streams(three(runners=())), WARNING, "runner r1 is not connected to c"),
    (lambda: members.check_streams(three(runners=(), draining=True)), OK, ""),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_verdicts(number: int) -> None:
    rule, verdict, said = EXAMPLES[number]
    finding = rule()
    assert finding.verdict is verdict, finding
    assert said in finding.seen
    assert bool(finding.advice) is (verdict is not OK), "whatever isn't well says what to do"


def test_settings_come_from_who_tells_them() -> None:
    assert settings_of((report("a", settings={"runner_grace_ms": "20000"}),)).runner_grace_ms == 20_000
    assert settings_of((report("a", settings={"runner_grace_ms": "much"}),)) == ClusterSettings()


def test_a_controller_that_refuses_could_not_be_checked(cronring: Cronring, api: FakeApi) -> None:
    done = cronring("doctor", "--controllers", api.address)
    assert done.exit_code == 1
    assert "unchecked: controllers" in done.output
    assert "Read its log" in done.output


def test_nobody_there(cronring: Cronring) -> None:
    address = f"127.0.0.1:{free_port()}"
    done = cronring("doctor", "--controllers", address, "-o", "json")
    assert done.exit_code == 3
    answer = json.loads(done.output)
    assert answer["verdict"] == "problem"
    assert address in answer["findings"][0]["seen"]


def test_neither_controllers_nor_the_database(cronring: Cronring) -> None:
    done = cronring("doctor", "--database-url", f"postgresql://nobody@127.0.0.1:{free_port()}/none")
    assert done.exit_code == 3
    assert "problem: database" in done.output
    assert "connecting to PostgreSQL at 127.0.0.1" in done.output


def test_wrong_usage(cronring: Cronring) -> None:
    assert cronring("doctor", "--controllers", "nowhere").exit_code == 2
