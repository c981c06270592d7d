"""How long a suspect has to refute: Lifeguard's LHA-Suspicion (section IV.B of the paper), as pure data."""

import math
from dataclasses import dataclass, field
from typing import Final

# Lifeguard's beta: the first accuser waits this many times longer than a well confirmed suspicion does.
MAX_OVER_MIN: Final = 6

# Lifeguard's K: independent accusers besides the first that shorten the wait to its minimum.
CONFIRMATIONS: Final = 3


def minimum_ns(multiplier: int, probe_interval_ns: int, members: int) -> int:
    """The wait of a fully confirmed suspicion: multiplier x max(1, log10(members)) x probe interval.

    `members` counts those who take part in the protocol, myself included.
    """
    return int(multiplier * max(1.0, math.log10(max(1, members))) * probe_interval_ns)


def wanted_confirmations(possible: int) -> int:
    """K: how many confirmations Lifeguard wants, or `possible` if that is less: members that are live, not me, and not
    accused by me.

    If there are none, the first accusation suffices.
    """
    return max(0, min(CONFIRMATIONS, possible))


def timeout_ns(min_ns: int, confirmations: int, wanted: int) -> int:
    """max(min, max - (max - min) x log(C + 1) / log(K + 1)), with max = 6 x min, C `confirmations` and K `wanted`.

    With K = 0 it is min. The base of the logarithm cancels out.
    """
    # A lone accuser may be slow itself, so it waits six times as long. Several accusers are hardly slow at once.
    if confirmations >= wanted:
        return min_ns
    max_ns = MAX_OVER_MIN * min_ns
    decay = math.log(confirmations + 1) / math.log(wanted + 1)
    return max(min_ns, int(max_ns - (max_ns - min_ns) * decay))


@dataclass(slots=True)
class Suspicion:
    """One suspicion that I hold, for one incarnation of a member."""

    started_ns: int
    accusers: list[str] = field(default_factory=list)
    verdict: bool = False  # somebody has already declared it dead: that counts as every confirmation wanted

    def accuse(self, accuser_id: str) -> bool:
        """Add an accuser. False: nothing new, or more than anybody needs."""
        if accuser_id in self.accusers or len(self.accusers) > CONFIRMATIONS:
            return False
        self.accusers.append(accuser_id)
        return True

    def deadline_ns(self, min_ns: int, possible: int) -> int:
        """When the member is dead unless it refutes. `possible`: see wanted_confirmations()."""
        confirmations = CONFIRMATIONS if self.verdict else max(0, len(self.accusers) - 1)
        return self.started_ns + timeout_ns(min_ns, confirmations, wanted_confirmations(possible))
