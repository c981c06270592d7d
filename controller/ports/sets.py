"""Sets of jobs that files declare: which jobs are whose, and what is to become of them."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol

from cronring.controller.ports.many import JobChange, NewJob, Outcome, Seen, Who
from cronring.controller.ports.reads import Namespaces
from cronring.schema.policy import parse_policy


class SetRow(NamedTuple):
    """`revision`: grows with each change by its file. `jobs`: how many it owns."""

    namespace: str
    name: str
    revision: int
    applied_at: int
    applied_by: str
    note: str
    jobs: int


class ByHand(NamedTuple):
    """What somebody did by hand to a job of a set since its file was last applied to it."""

    at: int
    action: str
    by: str
    note: str


class SetWork(NamedTuple):
    """What is to become of a set's jobs, by their keys. `revision`: of the set, when this was planned; 0: it is new.

    `adopts`: jobs that no set owns yet. `releases`: jobs of the set that no set shall own any more.
    """

    namespace: str
    name: str
    revision: int
    creates: Mapping[str, NewJob] = MappingProxyType({})
    adopts: Mapping[str, Seen] = MappingProxyType({})
    changes: Mapping[str, JobChange] = MappingProxyType({})
    removes: Mapping[str, Seen] = MappingProxyType({})
    releases: Mapping[str, Seen] = MappingProxyType({})

    @property
    def locks(self) -> list[str]:
        """Keys of the existing jobs that it touches."""
        return list(dict.fromkeys([*self.adopts, *self.changes, *self.removes, *self.releases]))

    @property
    def follows(self) -> dict[str, str]:
        """By key, which jobs these are to follow; "" for none."""
        specs = {key: job.spec for key, job in self.creates.items()}
        specs |= {key: change.spec for key, change in self.changes.items() if "policy" in change.names}
        return {key: parse_policy(spec.policy).after for key, spec in specs.items()}

    @property
    def is_empty(self) -> bool:
        """There is nothing to do."""
        return not (self.creates or self.locks)


class Sets(Protocol):
    """Every method raises StoreUnavailable and StoreError, as Store's do."""

    async def get_set(self, namespace: str, name: str) -> SetRow | None: ...

    async def list_sets(
        self, namespace: str, after: tuple[str, str], limit: int, namespaces: Namespaces = None
    ) -> list[SetRow]:
        """By namespace and name, from after `after` on. `namespace`: "" for any."""
        ...

    async def count_sets(self, namespace: str, namespaces: Namespaces = None) -> int:
        """How many list_sets has, on all pages."""
        ...

    async def set_keys(self, namespace: str, name: str, after_key: str, limit: int) -> list[str]:
        """Of the jobs that it owns, in order, from after `after_key` on ("": from the first)."""
        ...

    async def hand_changes(self, name: str, keys: Sequence[str]) -> dict[str, ByHand]:
        """By key, of those that somebody changed, or deleted, since the set's file was applied to them."""
        ...

    async def apply_set(self, work: SetWork, who: Who, *, dry_run: bool = False) -> dict[str, Outcome]:
        """One transaction: if one job can't be done, none is, and the outcomes say why.

        `dry_run`: nothing is done. Outdated among the outcomes: that job was changed since the plan. Raises Outdated if
        the set itself was.
        """
        ...


def changed_set(name: str) -> str:
    """The message of an Outdated."""
    return f"somebody else has applied the set {name!r} meanwhile; try again"
