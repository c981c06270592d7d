"""Makes a job of its own module, and tries what its runner's grant doesn't allow."""

from cronring import Context, JobRefused, manual, verb


@verb
def greet() -> None: ...


@manual
def sign_up(ctx: Context) -> None:
    print(ctx.jobs.create("signing.greet", "ada", every="30d", note="signed up"))
    for forbidden in ("invoices.each_second", "prod/signing.greet:ada"):
        try:
            ctx.jobs.pause(forbidden)
        except JobRefused as error:
            print(error.reason, error)
