"""`cronring migrate` on a real database, for programs."""

import json
import subprocess
import sys
from typing import Any

from cronring.sql import migrations


def migrated(url: str) -> Any:
    command = [sys.executable, "-m", "cronring.cli.main", "migrate", "--database-url", url, "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return json.loads(done.stdout)


def test_migrate_names_what_it_applied_as_json(empty_database_url: str) -> None:
    first = migrated(empty_database_url)
    assert first["schema"] == "cronring"
    assert first["applied"] == [{"version": each.version, "name": each.name} for each in migrations()]
    assert migrated(empty_database_url) == {"schema": "cronring", "applied": []}
