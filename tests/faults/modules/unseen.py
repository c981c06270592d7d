"""Verbs that run for longer than a runner may be out of sight: two that are stopped then, and two that may finish."""

from cronring import Context, cron

from tests.faults.modules.steady import NOTE_S, note

