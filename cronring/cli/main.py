"""Where the command line begins. Before SIGINT is heard here, Ctrl-C gives a traceback of Python: little is read."""

import gc
import os
import signal


def main() -> None:
    """Read the command line's modules, and do what it says. Outside of commands Ctrl-C ends it at once."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(128 + signal.SIGINT))
    # Hardly anything that is made while modules are imported is garbage: docs/decisions/0005. Who works for long sets
    # thresholds of its own.
    gc.set_threshold(50_000, 20, 20)
    # gRPC's core writes lines of its own to stderr, for each call that it refuses and each handshake that fails. What
    # there is to say is said by us. It asks for this as it is imported.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from cronring.cli.interrupts import leave, leave_flushed
    from cronring.trust.names import DEV_PARENT
    from cronring.trust.prctl import close_to_own_user

    # A command may hold a token, a key, a URL, and start an author's code. `drill` has to know a dev's controllers.
    if DEV_PARENT not in os.environ:
        close_to_own_user()
    signal.signal(signal.SIGINT, leave)
    from cronring.cli.root import run

    try:
        run()
    except KeyboardInterrupt:  # between two steps of a command's end
        leave_flushed()
    finally:
        signal.signal(signal.SIGINT, leave)


if __name__ == "__main__":
    main()
