"""Starts a controller or a runner in which one thing is otherwise, for bench.levers.

    python -m bench.lever CHANGE[,CHANGE] PYTHON -m MODULE ARGUMENT...

A change is a cluster's setting (`claims_in_flight=4`), or `loop=asyncio`. What follows is the command as it would be.
"""

import asyncio
import runpy
import sys
from dataclasses import fields

import uvloop

from cronring.controller.core.settings import ClusterSettings


def change(what: str) -> None:
    """Raises ValueError for what can't be changed."""
    name, _, value = what.partition("=")
    names = [field.name for field in fields(ClusterSettings)]
    if what == "loop=asyncio":
        uvloop.new_event_loop = asyncio.new_event_loop  # type: ignore[assignment]  # the change that was asked for
        uvloop.run = asyncio.run  # type: ignore[assignment]  # as above
    elif name in names:
        defaults = list(ClusterSettings.__init__.__defaults__ or ())
        defaults[names.index(name)] = int(value)
        ClusterSettings.__init__.__defaults__ = tuple(defaults)
    else:
        raise ValueError(f"{what!r}: neither loop=asyncio nor a setting of {', '.join(names)}")


if __name__ == "__main__":
    for each in filter(None, sys.argv[1].split(",")):
        change(each)
    module = sys.argv[4]
    sys.argv = [module, *sys.argv[5:]]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
