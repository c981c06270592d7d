"""The fixture that comes with the package. Light, as every run of pytest loads it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from cronring.testing import ClusterFactory, VirtualCluster


@pytest.fixture
def cronring_cluster() -> Iterator[ClusterFactory]:
    """Makes virtual clusters: `cronring_cluster("billing.py", start="2026-03-28")`. See cronring.testing."""
    from cronring.testing import VirtualCluster  # noqa: PLC0415  # only where it is used

    made: list[VirtualCluster] = []

    def make(*modules: Any, **options: Any) -> VirtualCluster:
        cluster = VirtualCluster(*modules, **options)
        made.append(cluster)
        return cluster

    yield make
    for cluster in made:
        cluster.close()
