"""An author's module whose verbs change jobs. Type checkers are to know what each call gives."""

from cronring import Context, JobNotFound, JobRefused, manual, verb


@verb
def invoice(payload: dict[str, int]) -> None:
    assert payload


@manual
def sync_signup(ctx: Context) -> None:
    key = ctx.jobs.create(
        "signups.invoice",
        "customer-7",
        cron="0 6 1 * *",
        payload={"id": 7},
        labels={"team": "x"},
        timeout="5m",
        retries=2,
        jitter="off",
    )
    assert key == "signups.invoice:customer-7"
    assert (
        ctx.jobs.create(
            "signups.invoice",
            "customer-7",
            cron="0 6 1 * *",
            payload={"id": 7},
            labels={"team": "x"},
            timeout="5m",
            retries=2,
            jitter="off",
        )
        == key
    )
    job = ctx.jobs.get(key)
    print(job)
    assert (job.schedule, job.payload, job.labels, job.source) == ("0 6 1 * *", {"id": 7}, {"team": "x"}, "api")
    assert ctx.jobs.run(key, payload={"id": 8}) == key
    ctx.jobs.update(key, every="2h", labels={"team": None, "tier": "gold"}, retries=None)
    job = ctx.jobs.get(key)
    assert (job.schedule, job.labels, job.paused) == ("every 2h", {"tier": "gold"}, False)
    assert ctx.jobs.pause(key, note="why") == key
    assert ctx.jobs.get(key).paused
    ctx.jobs.resume(key)


@manual
async def async_signup(ctx: Context) -> None:
    key = await ctx.jobs.create("signups.invoice", "customer-9", every="1h", payload={"id": 9}, jitter="off")
    assert (await ctx.jobs.get(key)).key == key
    await ctx.jobs.delete(key)
    try:
        await ctx.jobs.get(key)
    except JobNotFound as error:
        print("gone:", error)


@manual
def refused(ctx: Context) -> None:
    told = []
    for call in (
        lambda: ctx.jobs.delete("signups.sync_signup"),
        lambda: ctx.jobs.get("signups.invoic:x"),
        lambda: ctx.jobs.get("other/signups.invoice:x"),
        lambda: ctx.jobs.create("signups.invoice", "x", cron="61 * * * *"),
        lambda: ctx.jobs.create("signups.nothing", "x"),
        lambda: ctx.jobs.create("signups.invoice", "x", every="1h", timeout="soon"),
        lambda: ctx.jobs.create("signups.invoice", "x", every="1h", jitter="perhaps"),
    ):
        try:
            call()
        except (JobNotFound, JobRefused) as error:
            told.append(f"{type(error).__name__} {error.reason}: {error}")
    print("\n".join(told))
