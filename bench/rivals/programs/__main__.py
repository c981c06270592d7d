"""`python -m bench.rivals.programs NAME VERB` runs a rival of Python under its module's own name, as rivals wish it."""

import sys
from importlib import import_module

import uvloop

if __name__ == "__main__":
    name, verb = sys.argv[1:]
    program = import_module(f"bench.rivals.programs.{name}")
    uvloop.run(getattr(program, verb)())
