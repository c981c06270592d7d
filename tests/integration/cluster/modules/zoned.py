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


for _number in range(7, 19):

    def run() -> None:
        pass

    run.__name__ = run.__qualname__ = f"a{_number}"
    globals()[run.__name__] = cron(EACH_5_S, timezone="Europe/Berlin")(run)


@cron(EACH_5_S)
def plain() -> None:
    pass


@cron(EACH_5_S, timezone="Asia/Tokyo")
def tokyo() -> None:
    pass
