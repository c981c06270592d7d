"""`cronring apply`, `sets` and `jobs export` in real processes: exit codes, what people read, and thousands of jobs."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cluster.test_import import ready
from tests.support.cluster import Cluster

MANY = 3_000
SITE = '- {verb: crawler.site, name: %s, cron: "%s", payload: "\\"https://x.example\\""}\n'


def written(path: Path, *jobs: tuple[str, str], name: str = "prod") -> str:
    path.write_text(f"set: {name}\njobs:\n" + "".join(SITE % job for job in jobs))
    return str(path)


def told(cluster: Cluster, *arguments: str) -> Any:
    done = cluster.ask("apply", *arguments, "-o", "json")
    assert done.returncode in {0, 2}, done.stderr
    (answer,) = json.loads(done.stdout)
    return answer


@pytest.mark.timeout(560)
def test_a_file_in_the_hands_of_ci_and_of_people(cluster: Cluster, tmp_path: Path) -> None:
    ready(cluster)
    file = written(tmp_path / "jobs.yaml", ("a", "0 6 * * *"), ("b", "0 7 * * *"))
    look = cluster.ask("apply", file, "--dry-run")
    assert (look.returncode, look.stdout.splitlines()[0]) == (2, "set prod: 2 to make")
    assert cluster.ask("apply", file, "--dry-run", "--nope").returncode == 1
    assert cluster.ask("apply", file, "--note", "release 7").returncode == 0
    assert cluster.ask("apply", file, "--dry-run").returncode == 0
    assert cluster.ask("jobs", "update", "crawler.site:b", "--cron", "5 7 * * *", "--note", "hotfix").returncode == 0
    file = written(tmp_path / "jobs.yaml", ("b", "0 7 * * *"), ("c", "0 8 * * *"))
    look = cluster.ask("apply", file, "--prune", "--dry-run")
    assert look.returncode == 2
    assert look.stdout.splitlines()[0] == "set prod: 1 to remove, 1 to change, 1 to make"
    # By UTC. Between seven and five past, today's tick becomes tomorrow's.
    moved = "~ crawler.site:b: 5 7 * * * -> 0 7 * * *, 1 tick -> 1: 1 move, each "
    assert f"{moved}5m earlier" in look.stdout or f"{moved}23h55m later" in look.stdout
    assert ": hotfix" in look.stdout
    assert all(len(line) <= 80 for line in look.stdout.splitlines() if "by hand" not in line), look.stdout
    etag = told(cluster, file, "--prune", "--dry-run")["etag"]
    cluster.cli("jobs", "update", "crawler.site:a", "--cron", "9 6 * * *")
    late = cluster.ask("apply", file, "--prune", "--if-match", etag)
    assert (late.returncode, "it has been changed since" in late.stderr) == (1, True)
    etag = told(cluster, file, "--prune", "--dry-run")["etag"]
    assert cluster.ask("apply", file, "--prune", "--if-match", etag).returncode == 0
    assert [row["jobs"] for row in cluster.cli("sets", "list")] == [2]
    wrong = written(tmp_path / "wrong.yaml", ("x", "61 * * * *"), ("a.b-", "0 7 * * *"))
    refused = cluster.ask("apply", wrong)
    assert (refused.returncode, refused.stdout.count("\n! ")) == (1, 2)
    assert f"{wrong}:3: crawler.site:x: schedule: minute field" in refused.stdout
    both = cluster.ask("apply", str(tmp_path), "-o", "json")
    assert both.returncode == 1, "one of the set's files is wrong, so nothing of it is done"
    for form in ("yaml", "toml"):
        kept = tmp_path / "kept" / f"x.{form}"
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(cluster.ask("jobs", "export", "--set", "prod", "--format", form).stdout)
        assert told(cluster, str(kept), "--prune", "--dry-run")["unchanged"] == 2
    gone = cluster.ask("sets", "delete", "prod", "--yes")
    assert (gone.returncode, gone.stdout.splitlines()[0]) == (0, "set prod: 2 removed")
    assert cluster.ask("sets", "show", "prod").returncode == 1
    assert "clean" in cluster.ask("audit").stdout


@pytest.mark.timeout(560)
def test_thousands_are_one_apply(cluster: Cluster, tmp_path: Path) -> None:
    ready(cluster)
    large = tmp_path / "large.toml"
    payload = json.dumps(json.dumps("x" * 60_000))
    job = '[[jobs]]\nverb = "crawler.site"\nname = "n%d"\nmanual = true\npayload = %s\n'
    large.write_text('set = "large"\n' + "".join(job % (number, payload) for number in range(200)))
    much = cluster.ask("apply", str(large))
    assert (much.returncode, "make two sets of it" in much.stderr) == (1, True), much.stderr
    large.unlink()
    folder = tmp_path / "sets"
    folder.mkdir()
    written(folder / "a.yaml", ("a", "0 6 * * *"), name="a")
    written(folder / "b.yaml", ("b", "61 * * * *"), name="b")
    half = cluster.ask("apply", str(folder))
    assert (half.returncode, "nothing of b was changed" in half.stderr) == (1, True), half.stderr
    assert "set a: 1 to make" in half.stdout
    assert cluster.cli("sets", "list") == [], "all sets are looked at before the first one is changed"
    names = [f"n{number}" for number in range(MANY)]
    file = written(tmp_path / "jobs.yaml", *((name, "5 4 1 1 *") for name in names))
    assert told(cluster, file)["created"] == MANY
    file = written(
        tmp_path / "jobs.yaml", *((name, "6 4 1 1 *" if name.endswith("7") else "5 4 1 1 *") for name in names)
    )
    answer = told(cluster, file, "--hours", "8784")
    assert (answer["changed"], answer["unchanged"]) == (MANY // 10, MANY - MANY // 10)
    ticks = [each["ticks"] for each in answer["jobs"]]
    assert {(each["gone"], each["new"], each["shift_ms"]) for each in ticks} == {(1, 1, 60_000)}
    exported = tmp_path / "exported.yaml"
    exported.write_text(cluster.ask("jobs", "export", "--set", "prod").stdout)
    assert told(cluster, str(exported), "--dry-run")["unchanged"] == MANY
    (tmp_path / "jobs.yaml").write_text("set: prod\njobs: []\n")
    assert told(cluster, str(tmp_path / "jobs.yaml"), "--prune")["removed"] == MANY
