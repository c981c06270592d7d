"""The audit log: who changed what, from where, and what was refused. (The audit of the books is another thing.)"""

from collections.abc import Mapping
from typing import NamedTuple


class Change(NamedTuple):
    """What one call changed of one thing. Who, by which method and from where is known of the call in hand.

    `subject`: "job billing/close.month". `before`, `after`: JSON values of what was changed alone, without secrets;
    None: there was nothing, or there is nothing now.
    """

    subject: str
    namespace: str = ""  # "": the cluster's
    before: Mapping[str, object] | None = None
    after: Mapping[str, object] | None = None
