"""Who is let in by real controllers, who is not, what each is told, and when a right that is lost ends what goes on."""

import asyncio
import contextlib
import json
import time
from typing import Final

import pytest

from cronring.client import PermissionDenied, Unauthenticated
from cronring.client.model import Execution
from cronring.trust.certificates import new_authority
from tests.integration.trust.conftest import MODULES, House, ended, said
from tests.support.looking import look
from tests.support.waiting import wait_until

LOST_S: Final = 60.0  # a right that was taken is lost within seconds; who kept it would keep it for hours


async def runs(house: House, module: str, runner: str) -> list[Execution]:
    async with house.client() as client:
        found = await client.executions.list(f"{module}.each_second")
    return [each for each in found if each.runner.startswith(f"{runner}.")]


async def runners(house: House) -> list[str]:
    """Grants of those that are connected."""
    async with house.client() as client:
        return [each.id.partition(".")[0] for each in (await client.cluster.get()).runners if each.alive]


async def test_a_runner_joins_by_a_token_and_runs(house: House) -> None:
    token = await house.join("joined", "invoices", uses=1)
    await said(house.joins(token, "invoices"), "module_registered", "invoices")

    async def has_run() -> bool:
        return bool(await runs(house, "invoices", "joined"))

    await wait_until(has_run, house.cluster.runners[-1].tail)
    await let_in_on_record(house)
    late = house.joins(token, "invoices")
    assert await ended(late) == 1
    await said(late, "runner_not_let_in", "was used as often as it may be; make a new one", "runner-grant create")


async def let_in_on_record(house: House) -> None:
    """Who enrolled is known by the join token, and who brought a version by its certificate."""
    connection = await look(house.cluster.database_url)
    try:
        enrolled, deployed, first = await connection.fetch(
            "SELECT principal, method, namespace, subject, before, after, remark, origin, controller_id"
            " FROM cron_audit_log WHERE refused IS NULL AND (subject, principal) IN (('runner-grant joined',"
            " 'join:joined'), ('module invoices', 'runner:spiffe://cronring/runner/default/joined'))"
            " OR method = 'cronring token create' ORDER BY array_position(ARRAY['join', 'runner'],"
            " split_part(principal, ':', 1))"
        )
        role = await connection.fetchval("SELECT current_user")
    finally:
        await connection.close()
    assert tuple(enrolled)[1:7] == (
        "/cronring.runner.v1.Enrollment/Enroll", "default", "runner-grant joined", '{"uses_left":1}',
        '{"enrolled":true,"uses_left":0}', "",
    )  # fmt: skip
    assert (deployed["method"], deployed["namespace"]) == ("/cronring.runner.v1.RunnerGateway/Connect", "default")
    assert json.loads(deployed["after"])["added_keys"] == ["invoices.each_second"]
    assert deployed["remark"].startswith("for runner joined.")
    for each in (enrolled, deployed):
        assert each["origin"].startswith("ipv4:127.0.0.1:")
        assert each["controller_id"].startswith("c1")
    assert (first["principal"], first["subject"], first["before"]) == (f"database:{role}", "token admin", None)
    assert (first["origin"], first["controller_id"], first["remark"]) == ("", "", "")


LASTS_S = 1


async def test_a_join_token_that_is_none_ends_the_runner_and_says_why(house: House) -> None:
    old, made = await house.join("old", lasts_s=LASTS_S), time.monotonic()
    gone = await house.join("gone")
    mistyped = house.cluster.folder / "mistyped.join"
    text = gone.read_text().strip()
    mistyped.write_text(f"{text[:-1]}{'a' if text[-1] != 'a' else 'b'}")
    async with house.client() as client:
        await client.identities.revoke_runner_grant("gone")
    tried = [house.joins(file, "invoices") for file in (mistyped, gone)]
    assert [await ended(each) for each in tried] == [1, 1]
    await asyncio.sleep(max(0.0, made + LASTS_S + 0.1 - time.monotonic()))  # by then it has expired
    tried.append(house.joins(old, "invoices"))
    assert await ended(tried[2]) == 1
    await said(tried[0], "runner_not_let_in", "this is no join token")
    await said(tried[1], "runner_not_let_in", "was revoked; make a new one", "cronring runner-grant create")
    await said(tried[2], "runner_not_let_in", "has expired; make a new one", "cronring runner-grant create")


async def test_without_a_grant_a_runner_is_told_so_and_comes_in_once_there_is_one(house: House) -> None:
    late = house.runner("rented", extra=("--certs", str(house.pki.runner("late"))))
    await said(late, "there is no runner grant", "late", "cronring runner-grant create --name late --namespace default")
    await house.grant("late", "rented")
    await said(late, "module_registered", "rented")


async def test_a_runner_hosts_what_its_grant_names_and_nothing_else(house: House) -> None:
    await house.grant("narrow", "invoices")
    narrow = house.runner("invoices", "dunning", extra=("--certs", str(house.pki.runner("narrow"))))
    await said(narrow, "module_refused", "dunning", "is for modules invoices of namespace")
    await said(narrow, "module_registered", "invoices")
    async with house.client() as client:
        assert not [each for each in await client.jobs.list() if each.key.startswith("dunning.")]


async def test_what_may_not_activate_waits_for_a_deployer(house: House) -> None:
    await house.grant("careful", may_activate=False)
    extra = ("--certs", str(house.pki.runner("careful")))
    careful = house.runner("careful", extra=extra)
    await said(careful, "module_refused", "the runner's grant may not activate it", "cronring deploy FILE")
    async with house.client() as client:
        assert not [each for each in await client.deployments.list() if each.module == "careful"]
    deployer = await house.token("deployer", "deployer")
    done = await asyncio.to_thread(house.cluster.ask, "deploy", str(MODULES / "careful.py"), token=deployer)
    assert done.returncode == 0, done.stderr
    again = house.runner("careful", extra=extra)
    await said(again, "module_registered", "careful")


async def test_a_certificate_of_another_namespace_is_told_at_start(house: House) -> None:
    stray = house.runner("invoices", extra=("--certs", str(house.pki.runner("stray", "billing"))))
    assert await ended(stray) == 1
    await said(stray, "runner_not_let_in", "the certificate is for spiffe://cronring/runner/billing/stray", "'default'")


async def test_what_is_revoked_ends_within_seconds(house: House) -> None:
    """A runner's grant and a watcher's token, side by side. Then a new grant has the name, which is not for the old."""
    certs = house.pki.runner("leaving")
    await house.grant("leaving", "dunning")
    leaving = house.runner("dunning", extra=("--certs", str(certs)))
    watched = await house.token("watcher", "viewer")
    await wait_until(lambda: is_connected(house, "leaving"), leaving.tail)

    async def watch() -> float:
        with contextlib.suppress(Unauthenticated):
            async with house.client(watched) as client:
                async for _ in client.jobs.watch():
                    listed.set()
        return time.monotonic()

    listed = asyncio.Event()
    watching = asyncio.create_task(watch())
    await asyncio.wait_for(listed.wait(), 60)
    async with house.client() as client:
        await client.identities.revoke_token("watcher")
        await client.identities.revoke_runner_grant("leaving")
    began = time.monotonic()
    await said(leaving, "there is no runner grant", "leaving")
    assert time.monotonic() - began < LOST_S
    assert await watching - began < LOST_S
    async with house.client() as client:
        last = (await client.executions.list(limit=1))[0].id

    async def others_run() -> bool:
        return sum(each.id > last for each in await runs(house, "invoices", "joined")) > 2

    await wait_until(others_run, "no other runner runs")
    assert not [each for each in await runs(house, "dunning", "leaving") if each.id > last]
    house.joins(await house.join("leaving", "dunning"), "dunning")
    await said(leaving, "is older than the grant", "a new certificate is needed")
    await said(house.cluster.runners[-1], "module_registered", "dunning")


async def is_connected(house: House, grant: str) -> bool:
    return grant in await runners(house)


async def test_a_token_that_has_expired_is_refused(house: House) -> None:
    short = ("token", "create", "--name", "short", "--role", "viewer", "--expires", "2s")
    made = await asyncio.to_thread(house.cluster.ask, *short, token=house.admin)
    assert made.returncode == 0, made.stderr
    async with house.client(made.stdout.strip()) as client:

        async def refused() -> bool:
            try:
                await client.identities.who_am_i()
            except Unauthenticated as error:
                return "the token 'short' has expired" in str(error)
            return False

        await wait_until(refused, "it is still good")


async def test_a_viewer_changes_nothing_and_is_told_who_it_is(house: House) -> None:
    viewer = await house.token("viewer", "viewer")
    async with house.client(viewer) as client:
        await client.jobs.list()
        with pytest.raises(PermissionDenied, match="token:viewer has viewer@default"):
            await client.jobs.pause("invoices.each_second")
    me = await asyncio.to_thread(house.cluster.ask, "whoami", token=viewer)
    assert me.stdout.splitlines()[:2] == ["you are  the token viewer", "may      viewer@default"]


async def test_whoever_comes_the_wrong_way_is_told_the_right_one(house: House) -> None:
    other = house.cluster.folder / "other.crt"
    other.write_bytes(new_authority("cronring").certificate)

    def stderr(*more: str) -> str:
        done = house.cluster.ask("jobs", "list", token=house.admin, more=more)
        assert done.returncode != 0
        return done.stderr

    plain, stranger = await asyncio.gather(
        asyncio.to_thread(stderr, "--insecure"), asyncio.to_thread(stderr, "--ca", str(other))
    )
    assert "it speaks TLS, and was asked in plaintext (--insecure); give --ca FILE instead" in plain
    assert "its certificate is not of the CA that was given" in stranger
    enrolling = house.runner(
        "invoices", extra=("--join-token-file", str(await house.join("wrong")), "--ca", str(other))
    )
    await said(enrolling, "not_enrolled_yet", "its certificate is not of the CA that was given")


async def test_a_port_of_the_other_kind_is_told_apart(house: House) -> None:
    await house.grant("lost")
    certs, join = ("--certs", str(house.pki.runner("lost"))), await house.join("astray")
    connecting = house.runner("invoices", extra=(*certs, "--controllers", house.address))
    enrolling = house.runner(
        "invoices",
        extra=("--join-token-file", str(join), "--ca", str(house.pki.ca), "--controllers", house.cluster.peers[0]),
    )
    await said(connecting, "controller_not_connected", "with --certs, --controllers are --peer addresses")
    await said(enrolling, "not_enrolled_yet", "as --peer ports do; give a --grpc address")
