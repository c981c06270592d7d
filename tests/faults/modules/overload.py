"""The load of the trial of overload: sync verbs that take a fifth of a second each, noted in the journal.

`OVERLOAD_JOBS` of them are due each second; `OVERLOAD_RUN_S` is how long each takes.
"""

import json
import os
import time

from cronring import Context, cron

JOBS = int(os.environ.get("OVERLOAD_JOBS", "30"))
RUN_S = float(os.environ.get("OVERLOAD_RUN_S", "0.2"))


def note(event: str, ctx: Context) -> None:
    entry = {
        "event": event, "verb": ctx.job.split(".")[-1], "execution": ctx.execution_id, "tick": ctx.tick.timestamp(),
        "attempt": ctx.attempt, "at": time.time(), "pid": os.getpid(),
    }  # fmt: skip
    file = os.open(os.environ["JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, (json.dumps(entry) + "\n").encode())  # one write below PIPE_BUF: lines never mix
    os.close(file)


for number in range(JOBS):

    def run(ctx: Context) -> None:
        note("start", ctx)
        time.sleep(RUN_S)
        note("end", ctx)

    run.__name__ = run.__qualname__ = f"busy_{number:02}"
    globals()[run.__name__] = cron("* * * * * *")(run)
