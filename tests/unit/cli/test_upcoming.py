"""`cronring upcoming`: what comes, what won't fit the runners, and herds."""

import json

from tests.unit.cli.conftest import Cronring
from tests.unit.cli.fake_times import stamp


def test_what_wont_fit_is_said_in_the_servers_words(asked: Cronring) -> None:
    done = asked("upcoming")
    assert done.exit_code == 0
    at = stamp(900).ToDatetime().strftime("%Y-%m-%d %H:%M:%SZ")
    said = f"{at}: 4 sync runs of billing begin at once: the last begins about 1m late."
    assert said in " ".join(done.output.split())
    assert "herd: 4 begin at" in done.output
    (over,) = json.loads(asked("upcoming", "-o", "json").stdout)["overloads"]
    assert (over["module"], over["reason"], over["lateness_ms"]) == ("billing", "herd", 60_000)
