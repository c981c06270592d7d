"""bench.levers_books: what its levers change, and a very small run."""

import pytest

from bench.levers_books import LEVERS, Lever, change, said
from cronring import sql


def test_what_levers_change_is_there_to_be_changed() -> None:
    """Else one of them would measure the books as they are."""
    for lever in LEVERS:
        assert all(change(name).strip() for name in lever.changed), lever.name
        for of, words, others in lever.said:
            assert words not in said(lever, of, sql.statement(of)) or words in others, lever.name
    with pytest.raises(ValueError, match="does not say 'nonsense' any more"):
        said(Lever("odd", "", said=(("EndCronJob", "nonsense", ""),)), "EndCronJob", "SELECT")
