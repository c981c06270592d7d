"""Twenty jobs that may not be late."""

from cronring import cron


def make(number: int):
    def verb() -> None:
        pass

    verb.__name__ = verb.__qualname__ = f"job_{number}"
    return cron("*/5 * * * * *", jitter="off", late_after="1s")(verb)


for _number in range(20):
    globals()[f"job_{_number}"] = make(_number)
