"""A journal that verbs write and a judge reads, and a cluster without members yet."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cluster import Cluster

JOURNAL_MODULE = Path(__file__).parent / "modules" / "journal.py"
# Of modules/journal.py, for the judge.
PERIODS_S = {"each_second": 1, "each_second_sync": 1, "longer_than_its_period": 2}


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@pytest.fixture
def cluster(database_url: str, tmp_path: Path, journal: Path) -> Iterator[Cluster]:
    with Cluster(database_url, tmp_path, {"JOURNAL": str(journal)}) as empty:
        yield empty
