"""Random cases where it hurts: zones whose clocks were changed in odd ways, and patterns that name those hours."""

from datetime import datetime, timedelta
from functools import cache
from random import Random

from cronring.schema.pattern import PatternError
from cronring.schema.pattern_parse import parse_pattern
from tests.oracle.walk import END, EPOCH, Clock, clock_of

AWKWARD = [
    "Pacific/Apia",  # skipped 2011-12-30 whole
    "Pacific/Kwajalein",  # skipped 1993-08-21 whole
    "Pacific/Kiritimati",  # skipped 1994-12-31 whole
    "Pacific/Fakaofo",  # skipped 2011-12-30
    "America/Sao_Paulo",  # no midnight on the first day of summer, until 2018
    "America/Asuncion",
    "America/Havana",  # midnight: none in spring, two in autumn
    "Asia/Beirut",
    "Africa/Cairo",
    "Australia/Lord_Howe",  # by half an hour
    "Europe/Dublin",  # winter is the summer time, by -1
    "Africa/Casablanca",  # back for Ramadan, until 2087 by table, so four changes a year
    "Africa/El_Aaiun",
    "Asia/Gaza",  # likewise, with the footer's 50 o'clock
    "Asia/Hebron",
    "Antarctica/Troll",  # by two hours
    "Antarctica/Casey",  # by three hours, at odd minutes
    "Antarctica/Vostok",  # by seven
    "America/Scoresbysund",  # changed the zone and the clock on one day in 2024
    "America/Nuuk",  # at 23 o'clock of Saturday: the footer's -1
    "Africa/Monrovia",  # UTC-0:44:30 until 1972: by the second
    "America/Caracas",  # half an hour away, and back
    "Asia/Pyongyang",
    "Asia/Kathmandu",
    "Asia/Tehran",
    "Asia/Jerusalem",
    "Pacific/Chatham",  # at 2:45
    "Pacific/Easter",
    "America/St_Johns",  # at 0:01, and in 1988 by two hours
    "Europe/Berlin",
    "Europe/London",  # 1970 was all summer
    "Europe/Moscow",
    "Europe/Istanbul",
    "Asia/Ust-Nera",
    "Asia/Dhaka",
    "Antarctica/Macquarie",
    "America/New_York",
    "America/Danmarkshavn",
    "UTC",
]
DAY = 86_400


@cache
def changes(zone: str) -> tuple[int, ...]:
    """The instants from 1970 to 2099 at which the clock is moved: by looking once a day, then ever closer."""
    clock = clock_of(zone)
    days = range(-DAY, END + 1, DAY)
    offsets = [_offset(clock, day) for day in days]
    return tuple(
        _between(clock, day, day + DAY)
        for day, before, after in zip(days, offsets, offsets[1:], strict=False)
        if before != after
    )


def _offset(clock: Clock, second: int) -> timedelta:
    return clock(second) - EPOCH - timedelta(seconds=second)


def _between(clock: Clock, low: int, high: int) -> int:
    before = _offset(clock, low)
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(clock, middle) == before:
            low = middle
        else:
            high = middle
    return high


def invented_clock(random: Random, around: int) -> tuple[Clock, tuple[int, ...], tuple[int, ...]]:
    """A clock that is moved several times within two days, and its table: starts, offsets."""
    starts, offsets = [-(1 << 62)], [random.randrange(-12 * 4, 14 * 4 + 1) * 900]
    at = around
    for _ in range(random.randint(1, 5)):
        at += random.choice([1, 7, 30, 45, 60, 90, 120, 600, 1440]) * 60
        low, high = max(offsets[-1] - DAY, -12 * 3600), min(offsets[-1] + DAY, 14 * 3600)
        step = random.choice([-7200, -5400, -3600, -1800, 1800, 3600, 5400, 7200, 0])
        offset = offsets[-1] + step if step else random.randrange(low, high + 1, 900)
        if low <= offset <= high and offset != offsets[-1]:
            starts.append(at)
            offsets.append(offset)

    def clock(second: int) -> datetime:
        offset = [offset for start, offset in zip(starts, offsets, strict=True) if start <= second][-1]
        return EPOCH + timedelta(seconds=second + offset)

    return clock, tuple(starts), tuple(offsets)


def pattern(random: Random, wall: datetime) -> str:
    """A valid pattern, most often with ticks around a wall-clock time."""
    while True:
        text = _pattern(random, wall)
        try:
            parse_pattern(text)
        except PatternError:
            continue
        return text


def _pattern(random: Random, wall: datetime) -> str:
    if random.random() < 0.06:
        unit = random.choice("smh")
        return random.choice([f"{random.randint(1, 23)}{unit}", wall.strftime("%A"), wall.strftime("%a")])
    near_hour = (wall.hour + random.choice([-2, -1, 0, 0, 0, 1, 2])) % 24
    near_minute = random.choice([0, 0, 15, 30, 45, 59, wall.minute, random.randrange(60)])
    minute = _field(random, near_minute, 0, 59, wild=0.25)
    hour = _field(random, near_hour, 0, 23, wild=0.25)
    day = _field(random, (wall + timedelta(days=random.choice([-1, 0, 0, 1]))).day, 1, 31, wild=0.7)
    month = _field(random, wall.month, 1, 12, wild=0.8)
    weekday = _field(random, (wall.isoweekday() + random.choice([-1, 0, 0, 1])) % 7, 0, 7, wild=0.7)
    five = f"{minute} {hour} {day} {month} {weekday}"
    match random.random():
        case share if share < 0.6:
            return five
        case share if share < 0.8:
            return f"{_field(random, random.randrange(60), 0, 59, wild=0.05)} {five}"
    years = random.choice([f"{wall.year}", f"{wall.year}/{random.randint(1, 20)}", f"1970-{wall.year}", "2096", "*"])
    if random.random() < 0.5:
        return f"{random.randrange(60)} {five} {years}"
    return five if years == "*" else f"{five} {years}"


def _field(random: Random, value: int, low: int, high: int, wild: float) -> str:
    if random.random() < wild:
        step = random.choice([2, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 30])
        return random.choice(["*", "*", f"*/{min(step, high)}", f"{value}/{min(step, high)}", f"{low}-{high}/2"])
    value = min(max(value, low), high)
    other = random.randint(low, high)
    match random.randrange(8):
        case 0:
            return f"{min(value, other)}-{max(value, other)}"
        case 1:
            return f"{low}-{high}"
        case 2:
            return f"{value},{other}"
        case 3:
            return f"{other},{max(value - 1, low)}-{value}"
    return str(value)
