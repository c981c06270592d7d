"""CPython's collector in a child: it leaves what is loaded alone, and looks less often, unless the author said how."""

import gc
from collections.abc import Iterator

import pytest

from cronring.child.start import COLLECTED_AFTER, spare_the_collector


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    threshold, frozen = gc.get_threshold(), gc.get_freeze_count()
    yield
    gc.set_threshold(*threshold)
    if not frozen:
        gc.unfreeze()


@pytest.mark.parametrize("default", [700, 2_000])
def test_it_looks_at_more_objects_at_once(default: int) -> None:
    gc.set_threshold(default, 10, 10)
    spare_the_collector()
    assert gc.get_threshold()[0] == COLLECTED_AFTER
    assert gc.get_freeze_count() > 0


def test_what_the_author_has_set_stays() -> None:
    gc.set_threshold(300, 7, 7)
    spare_the_collector()
    assert gc.get_threshold() == (300, 7, 7)
