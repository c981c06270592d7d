"""A verb that writes to the descriptor by which its child talks to the runner: that child is replaced, nobody else."""

import json

import pytest

from cronring.schema.execution import Outcome
from tests.integration.runner.conftest import OpenStage

MODULE = """
import asyncio, os, socket, stat, time
from cronring import Context, cron

@cron("* * * * *")
def fine(): print("fine")

@cron("* * * * *")
def says(ctx: Context):
    line = ctx.payload["line"].encode("utf-8", "surrogatepass")
    line = line.replace(b"EXECUTION", repr(ctx.execution_id).encode()) * ctx.payload.get("times", 1)
    for name in os.listdir("/proc/self/fd"):
        try:
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                own = socket.socket(fileno=os.dup(int(name)))
                own.setblocking(True)
                own.sendall(line + b"\\n")
        except OSError:
            pass
    time.sleep(20)
"""


@pytest.mark.parametrize(
    ("line", "times"),
    [
        ("[", 200_000),  # nested deeper than the reader's stack: nobody killed the child, and its run hung
        ("5", 1),
        ("\ud800", 1),
        ('{"done":5,"peak":1}', 1),
        ('{"done":[["x",1,2,3]],"peak":1}', 1),
        ('{"done":[[EXECUTION,1,2]],"peak":1}', 1),
        ('{"done":[[EXECUTION,"now",2,3]],"peak":1}', 1),
        # What these said went on to the stream to the controller, and broke that for every run.
        ('{"done":[[EXECUTION,1,2,1e99]],"peak":1}', 1),
        ('{"done":[[EXECUTION,1,2,36893488147419103232]],"peak":1}', 1),
        ('{"done":[[EXECUTION,1,2,3,"failed","T","m","s",0,["no text"],[]]],"peak":1}', 1),
        ('{"done":[[EXECUTION,1,2,3,"failed","T","m",7,0,"",[]]],"peak":1}', 1),
        ('{"done":[[EXECUTION,1,2,3,"failed","T","m","s",-1,"",[]]],"peak":1}', 1),
        ('{"done":[[EXECUTION,1,2,3]],"peak":"much"}', 1),
        ('{"out":[EXECUTION,5,false]}', 1),
        ('{"back":"all"}', 1),
        ('{"failed":["T"]}', 1),
    ],
)
async def test_garbage_ends_its_child_and_its_run(open_stage: OpenStage, line: str, times: int) -> None:
    stage = await open_stage(MODULE, 1)
    result = await stage.run("says", payload_json=json.dumps({"line": line, "times": times}))
    assert result.outcome is Outcome.FAILED, result
    assert "garbage on its socket" in result.error_message
    assert (await stage.run("fine")).output == "fine\n"
