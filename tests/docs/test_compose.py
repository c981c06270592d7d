"""What docker-compose.yml starts, as processes of this machine: no Docker engine runs in CI."""

import re
import shlex
import time
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.docs.reading import ROOT
from tests.docs.walking import PATIENCE_S, Desk
from tests.support.cluster import free_port
from tests.support.others import python_for_all

CONTROLLERS: Final = ("controller-1", "controller-2", "controller-3")


class Host:
    """One machine in place of a network of containers: each service's ports are other ones here."""

    def __init__(self, desk: Desk, database_url: str) -> None:
        self._desk = desk
        self._database_url = database_url
        self._services: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())[
            "services"
        ]
        self._ports = {(name, port): free_port() for name in CONTROLLERS for port in ("7400", "7480", "7500")}
        for volume in ("trust", "join"):
            (desk.folder / volume).mkdir()

    def filled(self, text: str, service: str) -> str:
        text = text.replace("postgresql://cronring:cronring@postgres/cronring", self._database_url)
        text = text.replace("/modules/", f"{ROOT}/examples/").replace("$$", "$")
        if text == "--run-as=verbs":  # a user of the image, who starts the image's interpreter
            return f"--run-as=nobody --python={python_for_all()}"
        text = re.sub(r"(?:0\.0\.0\.0|localhost):(7480)", rf"{service}:\1", text)
        # A certificate of the containers is for the name localhost as well.
        kept = "localhost" if "https://" in text else "127.0.0.1"
        return re.sub(r"(controller-\d):(7\d{3})", lambda found: f"{kept}:{self._ports[found[1], found[2]]}", text)

    def start(self, name: str) -> tuple[int, str]:
        service = self._services[name]
        for variable, value in service.get("environment", {}).items():
            self._desk.type(name, f"export {variable}={shlex.quote(self.filled(value, name))}")
        if "entrypoint" in service:
            assert service["entrypoint"] == ["sh", "-ec"]
            return self._desk.type(name, f"sh -ec {shlex.quote(self.filled(service['command'][0], name))}")
        words = [each for word in service["command"] for each in self.filled(word, name).split()]
        return self._desk.type(name, shlex.join(["cronring", *words]))

    def is_healthy(self, name: str) -> bool:
        kind, *words = (self.filled(word, name) for word in self._services[name]["healthcheck"]["test"])
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            code, _ = self._desk.type(name, words[0] if kind == "CMD-SHELL" else shlex.join(words))
            if code == 0:
                return True
        return False


@pytest.mark.timeout(400)
def test_what_the_compose_file_starts_gets_healthy(tmp_path: Path, empty_database_url: str) -> None:
    with Desk(tmp_path) as desk:
        host = Host(desk, empty_database_url)
        for name in ("migrate", "trust", *CONTROLLERS):
            code, said = host.start(name)
            assert code == 0, f"{name}: {said}"
        assert host.is_healthy("controller-1")
        code, said = host.start("grants")
        assert code == 0, said
        code, said = host.start("runner-1")
        assert code == 0, said
        assert host.is_healthy("runner-1")
        # At the next `docker compose up` those that end are run again.
        for name in ("migrate", "trust", "grants"):
            code, said = host.start(name)
            assert code == 0, f"{name}: {said}"
        assert desk.type("controller-1", "cronring jobs list")[0] == 0
