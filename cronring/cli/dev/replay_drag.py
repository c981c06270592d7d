"""How much of a replay went by at the speed of real time, for runs that really last, and what to do about it."""

from typing import Final

LASTING_S: Final = 0.5  # a shorter run costs about as much as calling it does
TOLD_AFTER_S: Final = 2.0


class Drag:
    """`note` is called with each stretch of real time that virtual time was held by runs."""

    def __init__(self) -> None:
        self._held_s: dict[str, float] = {}  # by verb
        self._lasted_s = 0.0
        self._told = False

    def note(self, verb: str, lasted_s: float, held_s: float) -> None:
        """`verb`: of the run that has been under way for longest, for `lasted_s` by now."""
        if lasted_s >= LASTING_S:
            begun_s = lasted_s if self._lasted_s < LASTING_S else 0.0  # that of a run which might have been short
            self._held_s[verb] = self._held_s.get(verb, 0.0) + begun_s + held_s
        self._lasted_s = lasted_s

    def dominates(self, real_s: float) -> bool:
        """Most of the real time so far went by for runs."""
        held_s = sum(self._held_s.values())
        return held_s >= TOLD_AFTER_S and held_s * 2 >= real_s

    def news(self, virtual_s: float, real_s: float) -> dict[str, str] | None:
        """What to tell, once; None: nothing."""
        if self._told or not self.dominates(real_s):
            return None
        self._told = True
        return {"verb": self.verb, "speed": speed_text(virtual_s, real_s), "hint": self.hint}

    @property
    def verb(self) -> str:
        """The one that held it for longest."""
        return max(self._held_s, key=self._held_s.__getitem__, default="")

    @property
    def hint(self) -> str:
        return (
            f"virtual time waits for the code of {self.verb}: let it not sleep in a replay, or give its runs a length "
            f"with --duration {self.verb}=LENGTH, by which it is waited for 5 s at most"
        )


def speed_text(virtual_s: float, real_s: float) -> str:
    ratio = virtual_s / max(real_s, 0.001)
    return f"{ratio:,.0f}x" if ratio >= 100 else f"{ratio:.3g}x"
