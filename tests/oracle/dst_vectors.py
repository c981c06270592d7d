"""Changes of clocks that broke schedulers, each worked out by hand, with the reasoning. Instants are UTC.

Sources: the rules are those of docs/schedules.md. They are cronie's, cron(8) "Daylight Saving Time and other time
changes", without its limit of three hours. The changes are those of the IANA tz database, as its NEWS and source files
tell them. All but those of 2099 lie in the past of the tzdata that they were written with, so a newer one has the same.
"""

from typing import NamedTuple


class Vector(NamedTuple):
    """In (after, until] the ticks are exactly `ticks`; all as `YYYY-MM-DDTHH:MM[:SS]`."""

    zone: str
    pattern: str
    gap: str
    overlap: str
    after: str
    until: str
    ticks: list[str]
    why: str


BERLIN_SPRING = ("2026-03-28T12:00", "2026-03-29T12:00")  # at 01:00Z the clock goes from 02:00 (+1) to 03:00 (+2)
BERLIN_AUTUMN = ("2026-10-24T12:00", "2026-10-25T12:00")  # at 01:00Z the clock goes from 03:00 (+2) to 02:00 (+1)

VECTORS = [
    # Berlin, the ordinary gap
    Vector("Europe/Berlin", "30 2 * * *", "", "", *BERLIN_SPRING, ["2026-03-29T01:00"],
           "02:30 does not exist: once, at the first instant after the gap, 03:00 summer time"),
    Vector("Europe/Berlin", "30 2 * * *", "skip", "", *BERLIN_SPRING, [], "asked to skip it"),
    Vector("Europe/Berlin", "59 1 * * *", "", "", *BERLIN_SPRING, ["2026-03-29T00:59"], "the last minute before it"),
    Vector("Europe/Berlin", "0 3 * * *", "", "", *BERLIN_SPRING, ["2026-03-29T01:00"],
           "03:00 exists: it is the gap's end, and nothing was missed"),
    Vector("Europe/Berlin", "0 2 * * *", "", "", *BERLIN_SPRING, ["2026-03-29T01:00"],
           "02:00 itself is never shown: the clock is at 03:00 in that instant"),
    Vector("Europe/Berlin", "0,15,30,45 2,3 * * *", "", "", *BERLIN_SPRING,
           ["2026-03-29T01:00", "2026-03-29T01:15", "2026-03-29T01:30", "2026-03-29T01:45"],
           "four times missed are made up for once, and that is merged with 03:00, which is due then anyway"),
    Vector("Europe/Berlin", "30 0-23 * * *", "", "", "2026-03-29T00:00", "2026-03-29T02:00",
           ["2026-03-29T00:30", "2026-03-29T01:00", "2026-03-29T01:30"],
           "a range is fixed-time, even of all hours: 02:30 is made up for at 03:00"),
    Vector("Europe/Berlin", "30 * * * *", "", "", "2026-03-29T00:00", "2026-03-29T02:00",
           ["2026-03-29T00:30", "2026-03-29T01:30"], "the same times with * are a rhythm: each hour by the stop watch"),
    Vector("Europe/Berlin", "30 * * * *", "run_after", "", "2026-03-29T00:00", "2026-03-29T02:00",
           ["2026-03-29T00:30", "2026-03-29T01:30"], "a rhythm has nothing to make up for, even when asked to"),
    Vector("Europe/Berlin", "2h", "", "", "2026-03-28T22:00", "2026-03-29T05:00",
           ["2026-03-28T23:00", "2026-03-29T02:00", "2026-03-29T04:00"],
           "00:00, 04:00 and 06:00 of the clock; 02:00 is not shown (croniter 7.0 ticks at 03:00)"),
    Vector("Europe/Berlin", "*/10 30 2 * * *", "", "", *BERLIN_SPRING, ["2026-03-29T01:00"],
           "six seconds of one missed minute are one tick, at second 0"),
    Vector("Europe/Berlin", "30 2 29 3 *", "", "", "2026-01-01T00:00", "2027-12-31T00:00",
           ["2026-03-29T01:00", "2027-03-29T00:30"], "the missed time's own date matches"),
    Vector("Europe/Berlin", "30 2 * * 1", "", "", *BERLIN_SPRING, [], "it is a Sunday that misses its 02:30"),
    Vector("Europe/Berlin", "30 2 * * * 2027", "", "", *BERLIN_SPRING, [], "nor does another year's pattern catch up"),
    # Berlin, the ordinary overlap
    Vector("Europe/Berlin", "30 2 * * *", "", "", *BERLIN_AUTUMN, ["2026-10-25T00:30"], "once, at the first 02:30"),
    Vector("Europe/Berlin", "30 2 * * *", "", "first", *BERLIN_AUTUMN, ["2026-10-25T00:30"], "the same, said aloud"),
    Vector("Europe/Berlin", "30 2 * * *", "", "second", *BERLIN_AUTUMN, ["2026-10-25T01:30"], "the later 02:30"),
    Vector("Europe/Berlin", "30 2 * * *", "", "both", *BERLIN_AUTUMN, ["2026-10-25T00:30", "2026-10-25T01:30"], "both"),
    Vector("Europe/Berlin", "0 2,3 * * *", "", "second", *BERLIN_AUTUMN, ["2026-10-25T01:00", "2026-10-25T02:00"],
           "02:00 is shown twice, and again in the instant of the change; 03:00 once (before it the clock goes back)"),
    Vector("Europe/Berlin", "0 1,3 * * *", "", "second", *BERLIN_AUTUMN, ["2026-10-24T23:00", "2026-10-25T02:00"],
           "times shown once tick, whatever is wanted of those shown twice"),
    Vector("Europe/Berlin", "30 * * * *", "", "", "2026-10-24T23:00", "2026-10-25T02:00",
           ["2026-10-24T23:30", "2026-10-25T00:30", "2026-10-25T01:30"], "a rhythm goes on through both passes"),
    Vector("Europe/Berlin", "30 * * * *", "", "first", "2026-10-24T23:00", "2026-10-25T02:00",
           ["2026-10-24T23:30", "2026-10-25T00:30"], "unless told otherwise"),
    Vector("Europe/Berlin", "30 * * * *", "", "second", "2026-10-24T23:00", "2026-10-25T02:00",
           ["2026-10-24T23:30", "2026-10-25T01:30"], "likewise"),
    # New York: 2:00 -> 3:00 at 07:00Z, 2:00 -> 1:00 at 06:00Z
    Vector("America/New_York", "30 1-2 * * *", "", "", "2026-03-08T00:00", "2026-03-09T00:00",
           ["2026-03-08T06:30", "2026-03-08T07:00"], "01:30 EST, and 02:30 at 03:00 EDT"),
    Vector("America/New_York", "0 0 * * *", "", "", "2026-11-01T00:00", "2026-11-02T06:00",
           ["2026-11-01T04:00", "2026-11-02T05:00"], "midnight is 25 hours from midnight"),
    # Lord Howe: by half an hour. 2026-10-04 02:00 (+10:30) -> 02:30 (+11); 2026-04-05 02:00 (+11) -> 01:30 (+10:30)
    Vector("Australia/Lord_Howe", "15 2 * * *", "", "", "2026-10-03T00:00", "2026-10-04T00:00", ["2026-10-03T15:30"],
           "02:15 is made up for at 02:30"),
    Vector("Australia/Lord_Howe", "45 2 * * *", "", "", "2026-10-03T00:00", "2026-10-04T00:00", ["2026-10-03T15:45"],
           "02:45 exists: only half an hour was skipped"),
    Vector("Australia/Lord_Howe", "45 1 * * *", "", "both", "2026-04-04T00:00", "2026-04-05T00:00",
           ["2026-04-04T14:45", "2026-04-04T15:15"], "01:45 twice, half an hour apart"),
    Vector("Australia/Lord_Howe", "0 */2 * * *", "", "", "2026-10-03T13:00", "2026-10-03T18:00",
           ["2026-10-03T13:30", "2026-10-03T17:00"], "00:00 and 04:00: there was no 02:00"),
    Vector("Australia/Lord_Howe", "0 * * * *", "", "", "2026-04-04T14:00", "2026-04-04T17:00",
           ["2026-04-04T15:30", "2026-04-04T16:30"],
           "14:00Z is 01:00; 02:00 comes after one and a half hours, as the half hour before it is shown twice"),
    Vector("Australia/Lord_Howe", "*/15 * * * *", "", "", "2026-10-03T15:00", "2026-10-03T16:00",
           ["2026-10-03T15:15", "2026-10-03T15:30", "2026-10-03T15:45", "2026-10-03T16:00"],
           "01:45, 02:30, 02:45, 03:00: every quarter of an hour all the same"),
    # Apia went over the date line: after Thursday 29 December 2011 came Saturday 31, at 10:00Z (-10 -> +14)
    Vector("Pacific/Apia", "0 9 * * *", "", "", "2011-12-29T10:00", "2011-12-31T00:00",
           ["2011-12-29T19:00", "2011-12-30T10:00", "2011-12-30T19:00"],
           "Thursday 09:00; Friday's at Saturday's first instant; Saturday 09:00"),
    Vector("Pacific/Apia", "0 9,12,15 * * 5", "", "", "2011-12-29T10:00", "2011-12-31T10:00", ["2011-12-30T10:00"],
           "three times of the Friday that never was: once"),
    Vector("Pacific/Apia", "0 9 30 12 *", "", "", "2011-01-01T00:00", "2012-12-29T00:00", ["2011-12-30T10:00"],
           "30 December 2011 matches by its own date"),
    Vector("Pacific/Apia", "0 9 30 12 *", "skip", "", "2011-01-01T00:00", "2012-12-29T00:00", [], "not when skipped"),
    Vector("Pacific/Apia", "0 0 * * *", "", "", "2011-12-29T00:00", "2011-12-31T00:00",
           ["2011-12-29T10:00", "2011-12-30T10:00"],
           "Friday's midnight is missed, and made up for in the instant of Saturday's: merged"),
    Vector("Pacific/Apia", "0 12 * * 6", "", "", "2011-12-29T00:00", "2011-12-31T00:00", ["2011-12-30T22:00"],
           "Saturday noon is nothing special"),
    Vector("Pacific/Apia", "6h", "", "", "2011-12-29T21:00", "2011-12-30T17:00",
           ["2011-12-29T22:00", "2011-12-30T04:00", "2011-12-30T10:00", "2011-12-30T16:00"],
           "a rhythm that divides the day does not notice"),
    # Kwajalein went over it the same way: no 21 August 1993, at 12:00Z of that day (-12 -> +12)
    Vector("Pacific/Kwajalein", "30 8 21 8 *", "", "", "1993-08-01T00:00", "1993-09-01T00:00", ["1993-08-21T12:00"],
           "its 21 August never came, so at the first instant of the 22nd"),
    # Sao Paulo: 2018-11-04 00:00 (-3) -> 01:00 (-2) at 03:00Z; 2018-02-18 00:00 (-2) -> 17th 23:00 (-3) at 02:00Z
    Vector("America/Sao_Paulo", "0 0 * * *", "", "", "2018-11-03T00:00", "2018-11-05T12:00",
           ["2018-11-03T03:00", "2018-11-04T03:00", "2018-11-05T02:00"],
           "the Sunday has no midnight: it ticks at 01:00, its first instant"),
    Vector("America/Sao_Paulo", "0 0 4 11 *", "", "", "2018-11-03T00:00", "2018-11-05T12:00", ["2018-11-04T03:00"],
           "the missed midnight is of the 4th"),
    Vector("America/Sao_Paulo", "Sun", "", "", "2018-11-03T00:00", "2018-11-05T12:00", ["2018-11-04T03:00"],
           "a weekday's name is its midnight, so fixed-time"),
    Vector("America/Sao_Paulo", "30 23 * * *", "", "", "2018-02-17T12:00", "2018-02-18T12:00", ["2018-02-18T01:30"],
           "23:30 of Saturday twice: the first"),
    Vector("America/Sao_Paulo", "0 0 18 2 *", "", "", "2018-02-17T12:00", "2018-02-18T12:00", ["2018-02-18T03:00"],
           "midnight is first reached after the second 23:59: at 02:00Z the clock shows 23:00"),
    # Havana: 2024-03-10 00:00 -> 01:00 at 05:00Z; 2024-11-03 01:00 -> 00:00 at 05:00Z; no change in autumn 2026
    Vector("America/Havana", "0 0 10 * *", "", "", "2024-03-09T12:00", "2024-03-11T12:00", ["2024-03-10T05:00"],
           "no midnight on that day: its 01:00"),
    Vector("America/Havana", "0 0 * * *", "", "", "2024-11-02T12:00", "2024-11-04T12:00",
           ["2024-11-03T04:00", "2024-11-04T05:00"], "two midnights on one day: the first"),
    Vector("America/Havana", "0 0 3 * *", "", "both", "2024-11-02T12:00", "2024-11-04T12:00",
           ["2024-11-03T04:00", "2024-11-03T05:00"], "or both"),
    Vector("America/Havana", "0 0 * * *", "", "both", "2026-10-31T12:00", "2026-11-02T12:00",
           ["2026-11-01T04:00", "2026-11-02T04:00"], "what a footer of years before would have got wrong"),
    # Dublin: tzdata has winter as the daylight saving time, by -1 h. Same clocks as London's
    Vector("Europe/Dublin", "30 1 * * *", "", "", "2026-03-28T12:00", "2026-03-29T12:00", ["2026-03-29T01:00"],
           "the gap is where the clock goes forward, whatever the law calls the time after it"),
    Vector("Europe/Dublin", "30 1 * * *", "", "", "2026-10-24T12:00", "2026-10-25T12:00", ["2026-10-25T00:30"],
           "the first 01:30, at +1; PEP 495's fold is 0 there, though dst() is 0 as well"),
    Vector("Europe/Dublin", "30 1 * * *", "", "second", "2026-10-24T12:00", "2026-10-25T12:00", ["2026-10-25T01:30"],
           "the second one"),
    # Casablanca: +1, but 0 during Ramadan: 2026-02-15 03:00 -> 02:00 at 02:00Z, 2026-03-22 02:00 -> 03:00 at 02:00Z
    Vector("Africa/Casablanca", "30 2 * * *", "", "", "2026-02-14T12:00", "2026-02-15T12:00", ["2026-02-15T01:30"],
           "an overlap in February"),
    Vector("Africa/Casablanca", "30 2 * * *", "", "", "2026-03-21T12:00", "2026-03-22T12:00", ["2026-03-22T02:00"],
           "a gap in March, as Ramadan ends"),
    # Troll: by two hours. 2026-03-29 01:00 (0) -> 03:00 (+2), 2026-10-25 03:00 (+2) -> 01:00 (0), both at 01:00Z
    Vector("Antarctica/Troll", "30 1,2 * * *", "", "", "2026-03-28T12:00", "2026-03-29T12:00", ["2026-03-29T01:00"],
           "both lie in the gap: once"),
    Vector("Antarctica/Troll", "30 1,2 * * *", "", "", "2026-10-24T12:00", "2026-10-25T12:00",
           ["2026-10-24T23:30", "2026-10-25T00:30"], "each at its first showing"),
    Vector("Antarctica/Troll", "30 1,2 * * *", "", "second", "2026-10-24T12:00", "2026-10-25T12:00",
           ["2026-10-25T01:30", "2026-10-25T02:30"], "each at its second"),
    # Scoresbysund, 2024-03-31 at 01:00Z: zone -1 -> -2 and summer time in one instant, so the clock did not move
    Vector("America/Scoresbysund", "30 0 * * *", "", "", "2024-03-30T12:00", "2024-04-01T12:00",
           ["2024-03-31T01:30", "2024-04-01T01:30"], "two changes that cancel each other are none"),
    # Gaza 2026-03-28 at 00:00Z: 02:00 (+2) -> 03:00 (+3), Saturday before the last Sunday
    Vector("Asia/Gaza", "15 2 28 3 *", "", "", "2026-03-27T12:00", "2026-03-28T12:00", ["2026-03-28T00:00"],
           "the footer's 50 o'clock of Thursday is Saturday 02:00"),
    # Nuuk 2026-03-28 at 01:00Z of the 29th: Saturday 23:00 (-2) -> Sunday 00:00 (-1)
    Vector("America/Nuuk", "30 23 * * 6", "", "", "2026-03-28T12:00", "2026-03-30T00:00", ["2026-03-29T01:00"],
           "Saturday's 23:30 is made up for in Sunday's first instant: its own weekday decides"),
    Vector("America/Nuuk", "30 23 * * 0", "", "", "2026-03-28T12:00", "2026-03-29T12:00", [], "not Sunday's"),
    # Monrovia until 1972-01-07: 44 min 30 s behind, then UTC. At 00:44:30Z, 00:00:00 -> 00:44:30
    Vector("Africa/Monrovia", "0 12 6 1 *", "", "", "1972-01-01T00:00", "1972-01-07T00:00", ["1972-01-06T12:44:30"],
           "noon by a clock of odd seconds"),
    Vector("Africa/Monrovia", "0 0 7 1 *", "", "", "1972-01-06T12:00", "1972-01-08T00:00", ["1972-01-07T00:44:30"],
           "its midnight fell into the gap, whose end is not a whole minute"),
    Vector("Africa/Monrovia", "44 0 7 1 *", "", "", "1972-01-06T12:00", "1972-01-08T00:00", ["1972-01-07T00:44:30"],
           "the 44th minute's second 0 was skipped"),
    Vector("Africa/Monrovia", "45 44 0 7 1 *", "", "", "1972-01-06T12:00", "1972-01-08T00:00", ["1972-01-07T00:44:45"],
           "its second 45 was not"),
    # Caracas: 2007-12-09 03:00 (-4) -> 02:30 (-4:30) at 07:00Z; 2016-05-01 02:30 (-4:30) -> 03:00 (-4) at 07:00Z
    Vector("America/Caracas", "45 2 * * *", "", "", "2007-12-09T00:00", "2007-12-10T00:00", ["2007-12-09T06:45"],
           "02:45 twice"),
    Vector("America/Caracas", "45 2 * * *", "", "", "2016-05-01T00:00", "2016-05-02T00:00", ["2016-05-01T07:00"],
           "02:45 not at all: no summer time, but a gap like any other"),
    # St. John's 1988: double daylight saving, by two hours, at 00:01
    Vector("America/St_Johns", "0 1 3 4 *", "", "", "1988-04-02T12:00", "1988-04-03T12:00", ["1988-04-03T03:31"],
           "00:01 (-3:30) -> 02:01 (-1:30)"),
    # Casey by three hours, 2018-03-11 at 17:00Z of the 10th: 04:00 (+11) -> 01:00 (+8)
    Vector("Antarctica/Casey", "30 1-3 * * *", "", "second", "2018-03-10T12:00", "2018-03-11T00:00",
           ["2018-03-10T17:30", "2018-03-10T18:30", "2018-03-10T19:30"], "cronie's limit is three hours; here is none"),
    # London was an hour ahead all year from 1968 to 1971
    Vector("Europe/London", "0 0 1 1 *", "", "", "1970-01-01T00:00", "1971-06-01T00:00", ["1970-12-31T23:00"],
           "midnight of 1 January 1970 was before 1970 in UTC"),
    Vector("Asia/Tokyo", "0 9 1 1 * 1970", "", "", "1969-12-31T23:59:59", "1970-01-02T00:00", ["1970-01-01T00:00"],
           "the first instant that there is"),
    Vector("America/New_York", "0 19 31 12 *", "", "", "1969-12-01T00:00", "1971-02-01T00:00", ["1971-01-01T00:00"],
           "19:00 of 31 December 1969 is 1970-01-01T00:00Z, but patterns begin in 1970"),
    # The far end: by the footer's rules
    Vector("Europe/Berlin", "30 2 * * *", "", "", "2099-03-28T12:00", "2099-03-29T12:00", ["2099-03-29T01:00"],
           "the last Sunday of March 2099 is the 29th"),
    Vector("America/New_York", "0 19-23 31 12 * 2099", "", "", "2099-12-31T00:00", "2100-01-02T00:00", [],
           "19:00 of the last day is 2100 in UTC already"),
    Vector("Asia/Tokyo", "0 9 1 1 *", "", "", "2099-01-02T00:00", "2100-01-02T00:00", [],
           "1 January 2100 is past the years of patterns"),
]  # fmt: skip
