"""Verbs on the clocks of zones, each five seconds."""

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


@cron(EACH_5_S)
def plain() -> None:
    pass


@cron(EACH_5_S, timezone="Asia/Tokyo")
def tokyo() -> None:
    pass
