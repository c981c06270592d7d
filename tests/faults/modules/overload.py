"""The load of the trial of overload: sync verbs that take a fifth of a second each, noted in the journal.

`OVERLOAD_JOBS` of them are due each second; `OVERLOAD_RUN_S` is how long each takes.
"""

import os
import time

from noting import note

from cronring import Context, cron

JOBS = int(os.environ.get("OVERLOAD_JOBS", "30"))
RUN_S = float(os.environ.get("OVERLOAD_RUN_S", "0.2"))


for number in range(JOBS):

    def run(ctx: Context) -> None:
        note("start", ctx)
        time.sleep(RUN_S)
        note("end", ctx)

    run.__name__ = run.__qualname__ = f"busy_{number:02}"
    globals()[run.__name__] = cron("* * * * * *")(run)
