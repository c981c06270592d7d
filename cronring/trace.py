"""The trace of an execution, by W3C Trace Context: computed from what identifies it, so nobody keeps or sends it.

The process of the verb and the API both know these facts, and compute the same trace (docs/decisions/0121).
"""

from __future__ import annotations

import hashlib


def trace_id(execution_id: int, job: str, tick_us: int) -> str:
    """16 bytes in hexadecimal."""
    return _digest(execution_id, job, tick_us)[:32]


def traceparent(execution_id: int, job: str, tick_us: int) -> str:
    """The header of that name: `00-TRACE-SPAN-01`."""
    digest = _digest(execution_id, job, tick_us)
    return f"00-{digest[:32]}-{digest[32:48]}-01"  # 01: to be recorded


def _digest(execution_id: int, job: str, tick_us: int) -> str:
    """Ids of executions begin anew in a new database: job and tick keep two executions of one id apart."""
    return hashlib.sha256(f"cronring execution {execution_id} {job} {tick_us}".encode()).hexdigest()
