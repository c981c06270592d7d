"""`cronring console`: the console in a browser, logged in."""

import threading
import webbrowser

import click

from cronring.cli.conversation import ask
from cronring.cli.credentials import identity_of
from cronring.cli.login.browser import has_browser
from cronring.cli.options import controllers_option, output_option
from cronring.cli.output import print_json
from cronring.cli.printing import say

OPEN_S = 5.0  # a browser that is started may not come back


@click.command()
@click.argument("page", default="/", metavar="[PAGE]")
@click.option(
    "--print",
    "only_print",
    is_flag=True,
    envvar="CRONRING_CONSOLE_PRINT",
    help="Print the address, and open no browser.",
)
@output_option
@controllers_option
def console(page: str, only_print: bool, output: str, controllers: tuple[str, ...]) -> None:
    """Open the web console, logged in by your token. PAGE is a path of it: /, /jobs, /jobs/billing.close_day, /wall.

    The link works once, for ten minutes, in one browser. Whoever opens it may do what your token may. Without a token
    of `cronring token create` it is the console's own address, where you log in.

    \b
    Examples:
      cronring console
      cronring console /jobs/billing.close_day
      cronring console --print                      for a browser elsewhere
    """
    from cronring.cli.console_link import login_link

    if not page.startswith("/"):
        raise click.UsageError(f"PAGE is {page!r}; it must be a path of the console, as /jobs")
    told = ask(controllers, lambda client: client.cluster.get())
    identity = identity_of(controllers)
    link = login_link(told.console_url, identity.token or "", identity.ca, page)
    if output == "json":
        print_json({"url": link.url, "once": link.once})
        return
    say(link.url)
    if link.once:
        say("it works once, within ten minutes", err=True)
    if not only_print and has_browser():
        opening = threading.Thread(target=webbrowser.open, args=(link.url,), daemon=True)
        opening.start()
        opening.join(OPEN_S)
