"""Whether terminals get colours: for the command line, and for logs of controllers and runners."""

import os


def are_colours_wanted() -> bool:
    """Not with NO_COLOR (whatever it says) or CLICOLOR=0. See no-color.org, bixense.com/clicolors."""
    return not os.environ.get("NO_COLOR") and os.environ.get("CLICOLOR") != "0"
