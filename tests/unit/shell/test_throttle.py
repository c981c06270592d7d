"""Who is limited, by what, and what that costs others; on a clock that stands where it is put."""

from types import SimpleNamespace
from typing import Any, Final

import pytest

from cronring.controller.api.judging import Known
from cronring.controller.api.policy import Access, Audience, Reach
from cronring.controller.api.throttle import Allowances, Throttle
from cronring.controller.core.rates import Rate
from cronring.controller.errors import Forbidden, StoreUnavailable, Throttled, TooManyStreams, Unauthenticated
from cronring.schema.identity import NOBODY, Kind, Permission, Principal, Role, RoleGrant
from tests.support.callers import NamedCallers

S: Final = 1_000_000_000
VIEWER: Final = (RoleGrant(Role.VIEWER),)
ALLOWANCES: Final = Allowances(
    calls=Rate(10, 20), streams=2, strangers=Rate(1, 5), lookups=Rate(1, 12), members=Rate(1, 3), member_streams=4
)
PEOPLE: Final = Access(Audience.PEOPLE, Permission.VIEW, Reach.NAMESPACE, 0)


def shown(token: str, host: str = "10.0.0.1", certificate: str = "") -> Any:
    metadata = (("authorization", f"Bearer {token}"),) if token else ()
    names = {"x509_subject_alternative_name": [certificate.encode()]} if certificate else {}
    return SimpleNamespace(
        invocation_metadata=lambda: metadata, peer=lambda: f"ipv4:{host}:7", auth_context=lambda: names
    )


def of(audience: Audience) -> Access:
    return Access(audience, None, Reach.CLUSTER, 0)


class Bench:
    """A judge of tokens `test-NAME`, and of any certificate. Its clock stands at `now_ns`."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.callers = NamedCallers(ann=VIEWER, bob=VIEWER, dora=())
        self.throttle = Throttle(ALLOWANCES, lambda: self.now_ns)
        self.granted: list[str] = []
        self.judge = Known([self.callers], self._by_certificate, self.throttle, lambda: self.now_ns / S)

    async def _by_certificate(self, audience: Audience, it: Any) -> Principal:
        name = it.auth_context()["x509_subject_alternative_name"][0].decode()
        self.granted.append(name)
        return Principal(Kind.CONTROLLER if audience is Audience.CONTROLLERS else Kind.RUNNER, name)

    async def let_in(self, times: int, it: Any, access: Access = PEOPLE) -> int:
        """How many of these calls were not told to come again."""
        count = 0
        for _ in range(times):
            try:
                await self.judge.judged(access, it)
            except Throttled:
                continue
            except (Unauthenticated, Forbidden):
                pass
            count += 1
        return count


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_a_greedy_caller_is_told_to_come_again_and_another_is_not(bench: Bench) -> None:
    assert await bench.let_in(100, shown("test-ann")) == 20
    with pytest.raises(Throttled) as refused:
        await bench.judge.judged(PEOPLE, shown("test-ann"))
    assert str(refused.value) == (
        "token:ann makes too many calls to this controller (--call-rate): 10 a second are allowed, and 20 at once;"
        " come again in 100ms"
    )
    assert refused.value.retry_s == 0.1
    assert await bench.let_in(5, shown("test-bob")) == 5
    bench.now_ns = S // 10
    assert await bench.let_in(100, shown("test-ann")) == 1


async def test_it_is_who_calls_that_counts_and_not_where_from(bench: Bench) -> None:
    assert await bench.let_in(15, shown("test-ann", "10.0.0.1")) == 15
    assert await bench.let_in(15, shown("test-ann", "10.0.0.2")) == 5
    assert await bench.let_in(15, shown("test-bob", "10.0.0.2")) == 15


async def test_who_may_nothing_is_counted_too(bench: Bench) -> None:
    assert await bench.let_in(100, shown("test-dora")) == 20


async def test_wrong_tokens_are_looked_up_so_often_and_no_more(bench: Bench) -> None:
    for number in range(1_000):
        await bench.let_in(1, shown(f"test-{number}"))
    assert len(bench.callers.asked) == ALLOWANCES.strangers.burst
    with pytest.raises(Throttled, match=r"^10\.0\.0\.1 makes too many calls without a token that is known here: 1 a"):
        await bench.judge.judged(PEOPLE, shown("test-1001"))
    bench.now_ns = 2 * S
    for number in range(1_000):
        await bench.let_in(1, shown(f"test-{number}"))
    assert len(bench.callers.asked) == ALLOWANCES.strangers.burst + 2


@pytest.mark.parametrize("token", ["", "other-kind", "test-gone"])
async def test_one_wrong_token_over_and_over_is_limited_as_well(bench: Bench, token: str) -> None:
    assert await bench.let_in(100, shown(token)) == ALLOWANCES.strangers.burst


async def test_wrong_tokens_from_everywhere_are_bounded_together(bench: Bench) -> None:
    for number in range(1_000):
        await bench.let_in(1, shown(f"test-{number}", f"10.0.{number // 256}.{number % 256}"))
    assert len(bench.callers.asked) == ALLOWANCES.lookups.burst


async def test_a_flood_from_their_host_does_not_keep_out_who_is_known(bench: Bench) -> None:
    assert await bench.let_in(1, shown("test-ann")) == 1
    for number in range(3_000):
        await bench.let_in(1, shown(f"test-{number}"))
    bench.now_ns = S + 1  # it is time to look ann's token up again
    for number in range(3_000):
        await bench.let_in(1, shown(f"test-{number}"))
    assert await bench.let_in(10, shown("test-ann")) == 10


async def test_good_tokens_are_no_guesses(bench: Bench) -> None:
    bench.callers.principals |= {f"c{number}": Principal(Kind.TOKEN, f"c{number}", VIEWER) for number in range(50)}
    assert sum([await bench.let_in(1, shown(f"test-c{number}")) for number in range(50)]) == 50


async def test_a_token_that_is_revoked_becomes_a_wrong_one(bench: Bench) -> None:
    await bench.let_in(1, shown("test-ann"))
    del bench.callers.principals["ann"]
    bench.now_ns = S
    with pytest.raises(Unauthenticated):
        await bench.judge.judged(PEOPLE, shown("test-ann"))
    assert await bench.let_in(100, shown("test-ann")) == ALLOWANCES.strangers.burst


async def test_while_nobody_can_tell_tokens_are_no_cheaper(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def away(token: str) -> Principal:
        asked.append(token)
        raise StoreUnavailable("away")

    monkeypatch.setattr(bench.callers, "principal", away)
    for number in range(100):
        with pytest.raises((StoreUnavailable, Throttled)):
            await bench.judge.judged(PEOPLE, shown(f"test-{number}"))
    assert len(asked) == ALLOWANCES.strangers.burst


async def test_health_and_enrolling_are_not_in_the_way_of_each_other(bench: Bench) -> None:
    """A load balancer's checks come from the host that everybody's calls come from."""
    assert await bench.let_in(100, shown("test-gone")) == 5
    assert await bench.let_in(100, shown(""), of(Audience.ANYONE)) == 5
    assert await bench.let_in(100, shown(""), of(Audience.ENROLLING)) == 5
    assert await bench.let_in(100, shown("", "10.0.0.2"), of(Audience.ANYONE)) == 5


async def test_a_runners_certificate_is_limited_before_its_grant_is_looked_up(bench: Bench) -> None:
    assert await bench.let_in(100, shown("", certificate="east"), of(Audience.RUNNERS)) == 3
    assert bench.granted == ["east"] * 3
    assert await bench.let_in(100, shown("", certificate="west"), of(Audience.RUNNERS)) == 3
    assert await bench.let_in(100, shown("", "10.0.0.2", "east"), of(Audience.RUNNERS)) == 3, "another host's"
    assert await bench.let_in(1, shown("", certificate="east"), of(Audience.GRANTED)) == 0


async def test_gossip_is_not_limited(bench: Bench) -> None:
    assert await bench.let_in(1_000, shown("", certificate="c1"), of(Audience.CONTROLLERS)) == 1_000


async def test_who_is_judged_again_is_not_counted_again(bench: Bench) -> None:
    ann = await bench.judge.judged(PEOPLE, shown("test-ann"))
    for _ in range(100):
        await bench.judge.still(ann, PEOPLE, shown("test-ann"))
        bench.now_ns += S
    runner = await bench.judge.judged(of(Audience.RUNNERS), shown("", certificate="east"))
    for _ in range(100):
        await bench.judge.still(runner, of(Audience.RUNNERS), shown("", certificate="east"))


def test_so_many_streams_at_once_and_others_have_theirs(bench: Bench) -> None:
    ann, bob = (Principal(Kind.TOKEN, name, VIEWER) for name in ("ann", "bob"))
    first = bench.judge.streaming(ann, PEOPLE, shown("test-ann"))
    second = bench.judge.streaming(ann, PEOPLE, shown("test-ann", "10.0.0.2"))
    third = bench.judge.streaming(ann, PEOPLE, shown("test-ann"))
    with first, second:
        with pytest.raises(TooManyStreams, match=r"^of streams token:ann has 2 open at this controller"), third:
            pass
        with bench.judge.streaming(bob, PEOPLE, shown("test-bob")):
            assert bench.throttle.gauges()["caller_streams"] == 3
    assert bench.throttle.gauges()["caller_streams"] == 0
    with bench.judge.streaming(ann, PEOPLE, shown("test-ann")):
        pass


def test_streams_of_members_and_of_nobody_count_by_host(bench: Bench) -> None:
    runner = Principal(Kind.RUNNER, "spiffe://cronring/runner/default/east")
    for who, access, most, words in (
        (runner, of(Audience.RUNNERS), 4, rf"^of streams runner:{runner.name} at 10\.0\.0\.1 has 4 open"),
        (NOBODY, of(Audience.ANYONE), 2, r"^of streams 10\.0\.0\.1 has 2 open"),
    ):
        entered = [bench.judge.streaming(who, access, shown("")) for _ in range(most + 1)]
        for each in entered[:most]:
            each.__enter__()
        with pytest.raises(TooManyStreams, match=words):
            entered[most].__enter__()
        with bench.judge.streaming(who, access, shown("", "10.0.0.2")):
            pass
        for each in entered[:most]:
            each.__exit__(None, None, None)
