"""Verbs on the clocks of zones, each five seconds: so many that of two controllers each has some of them."""

from cronring import cron

EACH_5_S = "*/5 * * * * *"


@cron(EACH_5_S, timezone="Europe/Berlin")
def a1() -> None:
    pass


@cron(EACH_5_S, timezone="Europe/Berlin")
def a2() -> None:
    pass


@cron(EACH_5_S, timezone="Europe/Berlin", overlap="allow")
def a3() -> None:
    pass


@cron(EACH_5_S, timezone="Europe/Berlin", overlap="buffer_one")
def a4() -> None:
    pass


@cron(EACH_5_S, timezone="Europe/Berlin", on_missed="run_all")
def a5() -> None:
    pass


@cron(EACH_5_S, timezone="Europe/Berlin")
def a6() -> None:
    pass


@cron(EACH_5_S, timezone="Europe/Berlin")
def a7() -> None:
    pass


@cron(EACH_5_S, timezone="Europe/Berlin")
def a8() -> None:
    pass


@cron(EACH_5_S, timezone="Europe/Berlin")
def a9() -> None:
    pass


@cron(EACH_5_S, timezone="Europe/Berlin")
def a10() -> None:
    pass


@cron(EACH_5_S, timezone="Europe/Berlin")
def a11() -> None:
    pass


@cron(EACH_5_S, timezone="Europe/Berlin")
def a12() -> None:
    pass


@cron(EACH_5_S, timezone="Europe/Berlin")
def a13() -> None:
    pass


@cron(EACH_5_S, timezone="Europe/Berlin")
def a14() -> None:
    pass


@cron(EACH_5_S, timezone="Europe/Berlin")
def a15() -> None:
    pass


@cron(EACH_5_S, timezone="Europe/Berlin")
def a16() -> None:
    pass


@cron(EACH_5_S, timezone="Europe/Berlin")
def a17() -> None:
    pass


@cron(EACH_5_S, timezone="Europe/Berlin")
def a18() -> None:
    pass


@cron(EACH_5_S)
def plain() -> None:
    pass


@cron(EACH_5_S, timezone="Asia/Tokyo")
def tokyo() -> None:
    pass
