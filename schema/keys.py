"""Names of jobs, and the hash slot that a name belongs to."""

import hashlib
from typing import Final, NamedTuple

SLOTS: Final = 4096  # docs/decisions/0063: jobs are divided by them, tables are not
DEFAULT_NAMESPACE: Final = "default"


def qualified(namespace: str, name: str) -> str:
    """`name`, or `namespace/name` outside the default namespace."""
    return name if namespace == DEFAULT_NAMESPACE else f"{namespace}/{name}"


class JobKey(NamedTuple):
    """A job's name: `module.name`, or `namespace/module.name` outside the default namespace."""

    namespace: str
    module: str
    name: str

    def __str__(self) -> str:
        return qualified(self.namespace, f"{self.module}.{self.name}")


class VerbName(NamedTuple):
    """As people write it: `module.verb`, or `namespace/module.verb` outside the default namespace."""

    namespace: str
    module: str
    verb: str

    def __str__(self) -> str:
        return qualified(self.namespace, f"{self.module}.{self.verb}")


def namespace_of(key: str) -> str:
    """Of a job, by its key, or of a deployment, by its own: what stands before "/"."""
    namespace, slash, _ = key.rpartition("/")
    return namespace if slash else DEFAULT_NAMESPACE


def slot_of(key: str) -> int:
    """The hash slot (0 to 4095) of a job's key: stable for ever, as it is stored with the job."""
    digest = hashlib.blake2b(key.encode(), digest_size=2).digest()
    return int.from_bytes(digest, "big") % SLOTS
