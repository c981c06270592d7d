"""The audit log: who changed what, from where, and what was refused. (The audit of the books is another thing.)"""

from collections.abc import Mapping
from typing import NamedTuple


class Change(NamedTuple):
    """What one call changed of one thing. The call in hand says who did it, by which method and from where.

    `subject`: "job billing/close.month". `before`, `after`: JSON values of the changed fields only, without secrets.
    None: the thing did not exist before, or does not exist now.
    """

    subject: str
    namespace: str = ""  # "": the cluster's
    before: Mapping[str, object] | None = None
    after: Mapping[str, object] | None = None
