"""Four verbs that fail each second."""

from cronring import every


@every("1s", jitter="off")
def one() -> None:
    raise ValueError("one")


@every("1s", jitter="off")
def two() -> None:
    raise ValueError("two")


@every("1s", jitter="off")
def three() -> None:
    raise ValueError("three")


@every("1s", jitter="off")
def four() -> None:
    raise ValueError("four")
