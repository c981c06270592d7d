"""What verbs change by a runner with a certificate: by its grant, in its name, with the execution as the remark."""

from typing import Final

from cronring.client.model import Execution
from tests.integration.trust.conftest import House, said
from tests.support.waiting import wait_until

RUNNER: Final = "runner:spiffe://cronring/runner/default/signs"


async def test_a_verb_makes_a_job_by_its_runner_s_grant_and_no_other(house: House) -> None:
    await house.grant("signs", "signing")
    runner = house.runner("signing", extra=("--certs", str(house.pki.runner("signs"))))
    await said(runner, "module_registered", "signing")
    runs: list[Execution] = []
    async with house.client() as client:
        await client.jobs.trigger("signing.sign_up")

        async def ended() -> bool:
            runs[:] = await client.executions.list("signing.sign_up")
            return bool(runs) and runs[0].outcome is not None

        await wait_until(ended, runner.tail)
        run = await client.executions.get(runs[0].id)
        assert run.outcome == "completed", (run.error_message, run.output)
        made, other_module, other_namespace = (run.output or "").splitlines()
        assert made == "signing.greet:ada"
        assert other_module.startswith(
            "FORBIDDEN the runner grant 'signs' is for modules signing of namespace 'default'"
        )
        assert other_namespace.startswith("FORBIDDEN signing.sign_up may change jobs of its own namespace, 'default'")
        changes = [row for row in await client.audit_log.list() if row.method == "/cronring.v1.Jobs/CreateJob"]
        (change,) = [row for row in changes if row.subject == "job signing.greet:ada"]
        assert change.principal == RUNNER
        assert change.origin.startswith("ipv4:127.0.0.1:")
        assert change.remark == f"for execution {run.id} of signing.sign_up: signed up"

        async def refusals_told() -> bool:
            rows = await client.audit_log.list(refused_only=True)
            told = [row for row in rows if (row.principal, row.method) == (RUNNER, "/cronring.v1.Jobs/PauseJob")]
            return any("is for modules signing" in row.remark for row in told)

        await wait_until(refusals_told, "the refusal is not on record")
