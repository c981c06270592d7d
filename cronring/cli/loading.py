"""What costs less when it is loaded in another way than by an `import`."""

import sys


def load_structlog() -> None:
    """Load it as where rich isn't installed: it would load rich, to draw tracebacks that we never print.

    That is a tenth of a runner's start, and a twentieth of a controller's. Call it before either is imported.
    """
    if "rich" in sys.modules:
        return
    sys.modules["rich"] = None  # type: ignore[assignment]  # so importing it fails: import.rst of CPython
    try:
        import structlog  # noqa: F401
    finally:
        del sys.modules["rich"]
