"""What vixie-cron and cronie do with the five fields of a crontab's line, minute by minute. Shares nothing with schema.

Written from crontab(5) and from how cron's own parser answered: 200,000 random lines were put to cronie's, compiled.
"""

import random
from collections.abc import Iterator
from datetime import date, timedelta

BOUNDS = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 7)]
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]


class Refused(Exception):
    """Cron takes no such field."""


class CronLine:
    """Five fields without `~`. Raises Refused."""

    def __init__(self, text: str) -> None:
        fields = text.split()
        self.minutes, self.hours, self.days, self.months, weekdays = (
            values(field, number) for number, field in enumerate(fields)
        )
        self.weekdays = {day % 7 for day in weekdays}
        self.both_days = fields[2].startswith("*") or fields[4].startswith("*")
        self.follows_hours = fields[0].startswith("*") or fields[1].startswith("*")

    def on(self, day: date) -> bool:
        of_month, of_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return day.month in self.months and ((of_month and of_week) if self.both_days else (of_month or of_week))

    def minutes_of_day(self) -> list[int]:
        return sorted(hour * 60 + minute for hour in self.hours for minute in self.minutes)

    def ticks(self, first: date, days: int) -> Iterator[int]:
        """UTC seconds since 1970."""
        times = self.minutes_of_day()
        for number in range(days):
            day = first + timedelta(days=number)
            if self.on(day):
                start = (day - date(1970, 1, 1)).days * 86_400
                yield from (start + minute * 60 for minute in times)


def values(field: str, number: int) -> set[int]:
    low, high = BOUNDS[number]
    found: set[int] = set()
    for item in field.split(","):
        span, slash, step_text = item.partition("/")
        first_text, dash, last_text = span.partition("-")
        if span == "*":
            first, last = low, high
        elif dash:
            first, last = value(first_text, number), value(last_text, number)
            if first > last == 0 and not slash:
                last = 7
        elif slash:
            raise Refused(item)
        else:
            first = last = value(first_text, number)
        if slash and not (step_text.isdecimal() and int(step_text)):
            raise Refused(item)
        span_values = set(range(first, last + 1, int(step_text) if slash else 1))
        if not span_values <= set(range(low, high + 1)):
            raise Refused(item)
        found |= span_values
    return found


def value(word: str, number: int) -> int:
    if word.isdecimal():
        return int(word)
    names = {3: MONTHS, 4: DAYS}.get(number, [])
    if word.lower() not in names:
        raise Refused(word)
    return names.index(word.lower()) + BOUNDS[number][0]


def random_fields(chance: random.Random) -> str:
    return " ".join(",".join(_item(chance, number) for _ in range(_count(chance))) for number in range(5))


def _count(chance: random.Random) -> int:
    return chance.choice([1, 1, 1, 2, 3])


def _item(chance: random.Random, number: int) -> str:
    low, high = BOUNDS[number]

    def word() -> str:
        drawn = chance.randint(low, high)
        names = {3: MONTHS, 4: [*DAYS, "sun"]}.get(number)
        if names is None or chance.random() < 0.5:
            return f"{drawn:0{chance.choice([1, 1, 1, 2])}}"
        return chance.choice([str.lower, str.title, str.upper])(names[drawn - low])

    step = f"/{chance.choice([1, 2, 3, 5, 7, high, high + 1, 100, chance.randint(1, 40)])}"
    match chance.choice(["*", "*", "*/n", "*/n", "a", "a", "a-b", "a-b", "a-b/n", "odd"]):
        case "*":
            return "*"
        case "*/n":
            return f"*{step}"
        case "a":
            return word()
        case "a-b" | "a-b/n" as shape:
            first, last = word(), word()
            if value(first, number) > value(last, number) and chance.random() < 0.95:
                first, last = last, first
            return f"{first}-{last}" + (step if shape == "a-b/n" else "")
    return chance.choice(["*/0", f"{word()}/2", str(high + 1), "monday", "*", word(), word()])
