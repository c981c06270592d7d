"""A job each second, and a line for each run in the file that JOURNAL names."""

import os

from cronring import Context, every


@every("1s")
def note(ctx: Context) -> None:
    with open(os.environ["JOURNAL"], "a") as journal:
        journal.write(f"{ctx.fence}\n")
