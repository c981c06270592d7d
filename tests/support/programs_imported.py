"""What the fork server of tests/support/programs.py imports: each module of cronring, and so all that they need.

`cronring.cli.main` is run in each fork, and not imported.
"""

import gc
import pkgutil
from importlib import import_module

import cronring

for each in pkgutil.walk_packages(cronring.__path__, "cronring."):
    if each.name.rpartition(".")[2] not in ("__main__", "main") or each.name == "cronring.controller.main":
        import_module(each.name)
gc.freeze()  # what forks share stays shared
