"""Tokens and grants of runners through the API: who may give what, who sees what, and faults by their fields."""

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import pytest

from cronring.client import AsyncClient, Conflict, Invalid, NotFound, PermissionDenied, Unauthenticated
from cronring.client.identities import IdentityCalls, RoleIn
from cronring.schema.identity import EVERYWHERE, NOBODY, Kind, Principal, Role, RoleGrant
from cronring.schema.tokens import SecretKind, secret_fault
from tests.support.identified import Identified, identified

DEPLOYER = [RoleIn("deployer", "billing")]
BILLING = Principal(Kind.USER, "ann", (RoleGrant(Role.ADMIN, "billing"), RoleGrant(Role.OPERATOR, "prod")))


@pytest.fixture
def api(database_url: str) -> Iterator[Identified]:
    with identified(database_url) as served:
        yield served


@pytest.fixture
async def calls(api: Identified) -> AsyncIterator[IdentityCalls]:
    async with AsyncClient([api.address]) as client:
        yield client.identities


async def test_a_token_is_told_once_and_is_its_holder(api: Identified, calls: IdentityCalls) -> None:
    made = await calls.create_token("ci", DEPLOYER, lasts_s=90 * 86_400, by="ann")
    assert secret_fault(SecretKind.TOKEN, made.secret) == ""
    assert made.secret not in repr(made)
    row = made.token
    assert (row.name, row.grants, row.created_by, row.revoked_at) == ("ci", tuple(DEPLOYER), "ann", None)
    assert row.created_at is not None
    assert row.expires_at == row.created_at + timedelta(days=90)
    assert await calls.tokens() == [row]
    async with AsyncClient([api.address], token=made.secret) as holder:
        me = await holder.identities.who_am_i()
    assert (me.kind, me.name, me.grants, me.expires_at) == ("token", "ci", tuple(DEPLOYER), row.expires_at)


async def test_a_revoked_token_is_refused_at_once_and_shown_on_request(api: Identified, calls: IdentityCalls) -> None:
    secret = (await calls.create_token("ci", DEPLOYER)).secret
    async with AsyncClient([api.address], token=secret) as holder:
        await holder.identities.who_am_i()
        assert (await calls.revoke_token("ci", "bob")).revoked_by == "bob"
        with pytest.raises(Unauthenticated, match="'ci' was revoked"):
            await holder.identities.who_am_i()
    assert await calls.tokens() == []
    assert [row.revoked_by for row in await calls.tokens(with_revoked=True)] == ["bob"]
    with pytest.raises(NotFound, match="no token 'ci'"):
        await calls.revoke_token("ci")
    await calls.create_token("ci", DEPLOYER)
    with pytest.raises(Conflict, match="a token 'ci' already"):
        await calls.create_token("ci", DEPLOYER)


async def test_nobody_gives_or_takes_what_they_have_not(api: Identified, calls: IdentityCalls) -> None:
    await calls.create_token("everywhere", [RoleIn("viewer", EVERYWHERE)])
    await calls.create_token("mixed", [*DEPLOYER, RoleIn("viewer", "prod")])
    await calls.create_runner_grant("prod", "prod")
    api.anybody = BILLING
    await calls.create_token("mine", [RoleIn("admin", "billing")])
    await calls.create_runner_grant("mine", "billing")
    for namespace in ("prod", "other", EVERYWHERE):
        with pytest.raises(PermissionDenied, match="user:ann is no admin of"):
            await calls.create_token("more", [*DEPLOYER, RoleIn("viewer", namespace)])
    for name in ("everywhere", "mixed"):
        with pytest.raises(NotFound, match=f"there is no token '{name}'"):
            await calls.revoke_token(name)
    with pytest.raises(PermissionDenied, match="the namespace prod"):
        await calls.create_runner_grant("more", "prod")
    with pytest.raises(NotFound, match="there is no runner grant 'prod'"):
        await calls.revoke_runner_grant("prod")
    assert [row.name for row in await calls.tokens()] == ["mine"]
    assert [row.name for row in await calls.runner_grants()] == ["mine"]
    api.anybody = NOBODY
    for listing in (calls.tokens, calls.runner_grants):
        with pytest.raises(PermissionDenied, match="admin of no namespace"):
            await listing()
    assert (await calls.who_am_i()).grants == ()


async def test_a_token_gives_what_it_has_and_no_more(api: Identified, calls: IdentityCalls) -> None:
    secret = (await calls.create_token("boss", [RoleIn("admin", "billing")])).secret
    async with AsyncClient([api.address], token=secret) as boss:
        await boss.identities.create_token("ci", DEPLOYER)
        with pytest.raises(PermissionDenied, match="token:boss is no admin of all namespaces"):
            await boss.identities.create_token("root", [RoleIn("admin", EVERYWHERE)])


async def test_faults_are_told_by_their_fields(calls: IdentityCalls) -> None:
    with pytest.raises(Invalid) as caught:
        await calls.create_token("no spaces", [RoleIn("operater", "a b"), RoleIn("viewer", "")], lasts_s=0.5)
    told = dict(caught.value.violations)
    assert set(told) == {"name", "grants[0].role", "grants[0].namespace", "lasts_ms"}
    assert "did you mean 'operator'?" in told["grants[0].role"]
    with pytest.raises(Invalid, match="grants: has 0 roles"):
        await calls.create_token("ci", [])
    with pytest.raises(Invalid) as caught:
        await calls.create_runner_grant(
            "-East", "a b", ["not a module"] + ["m"] * 100, uses=0, certificate_only=True, lasts_s=1e12
        )
    assert {field for field, _ in caught.value.violations} == {
        "name", "namespace", "modules[0]", "modules", "uses", "certificate_only", "lasts_ms",
    }  # fmt: skip


async def test_a_grant_has_a_join_token_or_certificates_of_another_pki(calls: IdentityCalls) -> None:
    made = await calls.create_runner_grant("east", "billing", ["invoices"], may_activate=True, uses=3, lasts_s=86_400)
    assert secret_fault(SecretKind.JOIN, made.secret) == ""
    assert made.secret not in repr(made)
    row = made.grant
    assert (row.namespace, row.modules, row.may_activate, row.may_enroll) == ("billing", ("invoices",), True, True)
    assert (row.uses_left, row.expires_at is None) == (3, False)
    other = await calls.create_runner_grant("west", certificate_only=True)
    assert (other.secret, other.grant.may_enroll, other.grant.uses_left, other.grant.namespace) == (
        "", False, None, "default",
    )  # fmt: skip
    assert await calls.runner_grants() == [row, other.grant]
    assert (await calls.revoke_runner_grant("east", "bob")).revoked_by == "bob"
    assert [each.name for each in await calls.runner_grants()] == ["west"]
    assert len(await calls.runner_grants(with_revoked=True)) == 2
    with pytest.raises(Conflict, match="runner-grant revoke west"):
        await calls.create_runner_grant("west")


async def test_pages_follow_each_other(calls: IdentityCalls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cronring.client.paging.PAGE_SIZE_MAX", 2)
    for number in range(5):
        await calls.create_token(f"t{number}", DEPLOYER)
        await calls.create_runner_grant(f"g{number}")
    assert [row.name for row in await calls.tokens()] == [f"t{number}" for number in range(5)]
    assert [row.name for row in await calls.runner_grants()] == [f"g{number}" for number in range(5)]
    assert len(await calls.tokens(limit=3)) == 3
