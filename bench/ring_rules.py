"""A controller whose slots go by another rule than the ring's, to measure what the ring is for. Not in the product.

    python -m bench.ring_rules everybody PYTHON -m cronring.cli.main controller --database-url ...

What follows the rule is a command that runs the CLI, as bench/ring.py's cluster starts it: it is run in this process.
Everything else is the product's: which members there are, claims, backups' looks, adoption.
"""

import sys
from typing import Final
from unittest.mock import patch

from cronring.cli.main import main as cli
from cronring.controller.core.node import parts
from cronring.controller.core.node.membership import Membership
from cronring.controller.core.node.window import Duty
from cronring.schema.keys import SLOTS


class Everybody(Membership):
    """Every controller attempts every job at run_at; PostgreSQL decides."""

    __slots__ = ()

    def duties(self) -> list[Duty]:
        return [Duty.PRIMARY] * SLOTS


class Leader(Membership):
    """The member with the lowest id attempts every job, the next one is the backup of them all."""

    __slots__ = ()

    def duties(self) -> list[Duty]:
        place = self.ring.members.index(self._context.controller_id) if self._is_on_ring() else SLOTS
        duty = (Duty.PRIMARY, Duty.BACKUP)[place] if place < 2 else Duty.NONE
        return [duty] * SLOTS

    def _is_on_ring(self) -> bool:
        return self._context.controller_id in self.ring.members


RULES: Final = {"everybody": Everybody, "leader": Leader}


def main() -> None:
    rule, *command = sys.argv[1:]
    sys.argv = ["cronring", *command[command.index("cronring.cli.main") + 1 :]]
    with patch.object(parts, "Membership", RULES[rule]):
        cli()


if __name__ == "__main__":
    main()
