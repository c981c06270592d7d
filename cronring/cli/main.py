"""Where the command line begins. Before SIGINT is heard here, Ctrl-C gives a traceback of Python: little is read."""

import os
import signal


def main() -> None:
    """Read the command line's modules, and do what it says."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(128 + signal.SIGINT))
    from cronring.cli.interrupts import guarded

    guarded()


if __name__ == "__main__":
    main()
