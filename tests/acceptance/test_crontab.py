"""From a crontab to a cluster that runs it, and what `plan` and `lint` say of that cluster."""

import json
import re
from pathlib import Path

from tests.acceptance.dev import ROOT, Dev, fields
from tests.support import programs

CRONTAB = """\
CRON_TZ=Europe/Berlin
# Says that it is alive, on time.
@every_second echo "from $LOGNAME's shell"
# Takes longer than a second.
@every_second sleep 1.5
0 4 * * mon-fri echo weekdays
"""


def cronring(*arguments: str, code: int = 0) -> str:
    done = programs.run(arguments, folder=ROOT)
    assert done.returncode == code, done.stderr + done.stdout
    return done.stdout


def test_a_crontab_runs_on_a_cluster(folder: Path) -> None:
    folder.chmod(0o755)
    tab, module = folder / "tab", folder / "night.py"
    tab.write_text(CRONTAB)
    cronring("import", "crontab", str(tab), "-O", str(module))
    with Dev([str(module), "--for", "5m"], folder) as dev:
        address = fields(dev.wait_for(lambda line: "process_started name=controller-1" in line))["grpc"]
        for _ in range(5):  # so many runs are enough for lint to judge by
            dev.wait_for(lambda line: "job=night.sleep " in line and "outcome=completed" in line)
        asked = ("--controllers", address)
        echoes = json.loads(cronring("executions", "list", "--job", "night.echo", "-n", "1", "-o", "json", *asked))
        assert "'s shell" in cronring("executions", "get", str(echoes[0]["id"]), *asked)

        assert "nothing changes: the 3 jobs keep their" in cronring("plan", str(module), *asked)
        changed = folder / "new" / "night.py"
        changed.parent.mkdir()
        changed.write_text(module.read_text().replace('"0 4 * * 1-5"', '"30 4 * * 1-5"'))
        plan = json.loads(cronring("plan", str(changed), "--days", "7", "-o", "json", *asked))
        assert {(job["verb"], job["change"], job["shift_s"]) for job in plan["jobs"]} == {
            ("echo", "same", 0),
            ("sleep", "same", 0),
            ("echo_2", "changed", 1800),
        }

        found = json.loads(cronring("lint", str(module), *asked, "-o", "json", code=1))
        slow = [finding for finding in found if finding["level"] == "warning"]
        assert [(finding["rule"], finding["verb"]) for finding in slow] == [("slow", "sleep")]
        assert re.search(r"took (1s[5-9]|[2-9]s)", slow[0]["message"]), slow
        dev.interrupt()
        assert dev.finish() in {0, 130}


def test_a_crontab_as_jobs_of_one_verb(folder: Path) -> None:
    folder.chmod(0o755)
    tab, module = folder / "tab", folder / "commands.py"
    tab.write_text('GREETING=hi\n@every_second cat; echo "$GREETING"%from stdin\n0 4 * * mon-fri TZ=UTC nightly.sh\n')
    cronring("import", "verb", "-O", str(module))
    with Dev([str(module), "--for", "5m"], folder) as dev:
        address = fields(dev.wait_for(lambda line: "process_started name=controller-1" in line))["grpc"]
        dev.wait_for(lambda line: "a runner hosts" in line)
        command = ("import", "crontab", str(tab), "--as", "jobs", "--verb", "commands.execute")
        asked = ("--timezone", "Europe/Berlin", "--controllers", address)
        made = cronring(*command, *asked)
        assert [line.split()[0] for line in made.splitlines()] == [
            "commands.execute:cat",
            "commands.execute:nightly",
        ]
        assert cronring(*command, *asked).splitlines()[1] == made.splitlines()[1]  # as often as you like
        run = fields(dev.wait_for(lambda line: " execution " in line and "outcome=completed" in line))
        assert run["job"] == "commands.execute:cat"
        shown = cronring("executions", "get", run["id"], "--controllers", address)
        assert shown.endswith("  from stdin\n  hi\n")
        job = json.loads(cronring("jobs", "get", "commands.execute:nightly", "-o", "json", "--controllers", address))
        assert (job["schedule"], job["timezone"], job["source"]) == ("0 4 * * 1-5", "Europe/Berlin", "api")
        dev.interrupt()
        assert dev.finish() in {0, 130}
