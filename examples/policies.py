"""What jobs may say about themselves: what each of them does when something is late, missing or in its way."""

from dataclasses import dataclass

from cronring import Context, cron, every, manual, once, verb


@dataclass
class Invoice:
    """What `resend` needs to know."""

    number: int
    to: str
    copies: int = 1


@cron(
    "0 6 1 * *",
    timezone="Europe/Berlin",
    timeout="30m",
    on_disconnect="finish",
    retries=5,
    backoff="1m",
    retry_on=[ConnectionError, TimeoutError, "lost"],
)
async def close_month(ctx: Context) -> None:
    """06:00 in Berlin on the first of each month. Goes on even if every controller is away."""
    ctx.log.info("closing the month before %s", ctx.local_tick.date())


@cron("*/5 * * * *", window="Mon-Fri 08:00-18:00 Europe/Berlin", on_missed="run_last", catch_up_window="1h")
def send_reminders(ctx: Context) -> None:
    """One run makes up for all that were missed."""
    since = ctx.previous_success or ctx.tick
    print(f"reminders due since {since:%H:%M}, {ctx.missed} ticks missed")


@every("30m", anchor="2026-01-01", jitter="auto")
def refresh_rates(ctx: Context) -> None:
    """At :00 and :30, or up to three seconds later, as others may ask then, too; sooner while the market moves."""
    print("rates refreshed")
    if 8 <= ctx.tick.hour < 18:
        ctx.next_in("10m")


@once("2027-01-01 00:05", timezone="Europe/Berlin")
def new_tariff() -> None:
    """Five minutes into the year."""
    print("the new tariff applies")


@manual(retries=2)
def resend(ctx: Context, invoice: Invoice) -> None:
    """Only runs when somebody asks for it, and says for which invoice."""
    ctx.log.info("sending %d of invoice %d to %s", invoice.copies, invoice.number, invoice.to)


@verb
def quote(amount: int) -> int:
    """Has no schedule, so it is no job; the API may make one of it."""
    return amount * 119 // 100
