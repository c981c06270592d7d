"""dev on a terminal: one live picture, drawn anew a few times a second."""

from rich.console import Console
from rich.live import Live
from rich.text import Text

from cronring.cli.dev.happenings import Happening, StartProgress
from cronring.cli.dev.panels import picture
from cronring.cli.dev.state import DevState
from cronring.cli.printing import visible


class Display:
    """Steps of the start as lines; from `begin` on, the picture."""

    def __init__(self, state: DevState, console: Console, title: str) -> None:
        self._state = state
        self._console = console
        self._title = title
        self._live: Live | None = None

    def tell(self, happening: Happening) -> None:
        if self._live is None and isinstance(happening, StartProgress):
            self._console.print(Text.assemble(("✓ ", "green"), visible(happening.text)))

    def draw(self) -> None:
        """The state as it is now. The first time, the picture takes the terminal over."""
        if self._live is None:
            # The other screen: whatever the user had on the terminal comes back at the end.
            self._live = Live(console=self._console, screen=True, auto_refresh=False)
            self._live.start()
        size = self._console.size
        self._live.update(picture(self._state, self._title, size.width, size.height), refresh=True)

    def close(self) -> None:
        """Give the terminal back, with the last picture left on it."""
        if self._live is None:
            return
        self._live.stop()
        self._live = None
        size = self._console.size
        self._console.print(picture(self._state, self._title, size.width, size.height))
