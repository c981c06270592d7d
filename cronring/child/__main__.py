"""Started by path, with the author's interpreter: `python …/cronring/child MODE …`. See `cronring.child.start`.

The SDK is loaded from the folder of this file, straight into sys.modules. So nothing of ours comes onto the author's
sys.path: no site-packages, no `schema`, no `controller`.
"""

import importlib.util
import os
import sys


def _load_sdk(root: str) -> None:
    path = os.path.join(root, "__init__.py")
    spec = importlib.util.spec_from_file_location("cronring", path, submodule_search_locations=[root])
    assert spec is not None and spec.loader is not None  # noqa: PT018
    module = importlib.util.module_from_spec(spec)
    sys.modules["cronring"] = module
    spec.loader.exec_module(module)


def _ensure_sdk() -> None:
    if "cronring" not in sys.modules:
        _load_sdk(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


if __name__ == "__mp_main__":  # a process that multiprocessing started for a verb: it imports the author's file
    _ensure_sdk()

if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    # Python put this directory first (and -P or PYTHONSAFEPATH may have kept it out): its names are not the author's.
    if sys.path and os.path.realpath(sys.path[0]) == os.path.realpath(here):
        del sys.path[0]
    _ensure_sdk()
    # multiprocessing ("spawn", "forkserver") has its processes run this file again, by its path, unless it has a spec.
    __file__ = os.path.join(here, "__main__.py")
    __spec__ = None
    from cronring.child.start import main

    main(sys.argv[1:])
