"""`cronring migrate` on a real database, for programs."""

import json
from typing import Any

from cronring.sql import migrations
from tests.support import programs


def migrated(url: str) -> Any:
    done = programs.run(("migrate", "--database-url", url, "-o", "json"))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_migrate_names_what_it_applied_as_json(empty_database_url: str) -> None:
    first = migrated(empty_database_url)
    assert first["schema"] == "cronring"
    assert first["applied"] == [{"version": each.version, "name": each.name} for each in migrations()]
    assert migrated(empty_database_url) == {"schema": "cronring", "applied": []}
