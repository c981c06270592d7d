"""Every method, asked by everybody: who is let in, and what the others are told."""

import importlib
import pkgutil
from pathlib import Path
from typing import Any, Final

import grpc
import pytest
from google.protobuf import message_factory
from grpc import StatusCode
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from cronring.controller.api import door as doors
from cronring.controller.store.pool import Database
from cronring.protos.cronring import v1 as api
from cronring.protos.gossip.v1 import gossip_pb2
from cronring.protos.runner.v1 import runner_pb2
from cronring.trust.channels import channel_to
from tests.integration.api.conftest import CALLERS as ROLES
from tests.integration.api.conftest import Scene
from tests.integration.api.visitors import Visiting, Visitor
from tests.integration.api.who_may_table import CALLERS, CODES, Row, table
from tests.support.listening import listening
from tests.support.secured import Pki
from tests.support.waiting import TIMEOUT_S

# Of the port of members: who gets a connection, and a letter for each of them.
CERTIFIED: Final = (
    "runner", "runner with a token", "revoked runner", "runner without a grant", "runner of another namespace",
    "another cluster's runner", "controller", "controller with a token", "another cluster's controller",
)  # fmt: skip
AT_MEMBERS: Final = {
    "cronring.gossip.v1.Gossip/Deliver": "fffffu..u",
    "cronring.runner.v1.RunnerGateway/Connect": "..uuuuffu",
    "cronring.runner.v1.Renewals/Renew": "..uuuuffu",
    "grpc.health.v1.Health/Check": ".........",
    "grpc.health.v1.Health/Watch": ".........",
    "grpc.health.v1.Health/List": ".........",
}
UNSERVED: Final = "---------"
TAKEN: Final = {"cronring.runner.v1.Renewals/Renew": StatusCode.INVALID_ARGUMENT}  # by who is let in: it has no CSR


def methods() -> dict[str, Any]:
    """Descriptors of all that a controller serves, by path."""
    files = [
        importlib.import_module(f"{api.__name__}.{module.name}")
        for module in pkgutil.iter_modules(api.__path__)
        if module.name.endswith("_pb2")
    ]
    of_all: list[Any] = [*files, gossip_pb2, runner_pb2, health_pb2, reflection_pb2]
    return {
        f"{service.full_name}/{method.name}": method
        for file in of_all
        for service in file.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    }


class Port:
    """`async with Port(...)`: connections of visitors to it. `parsed`: what became a message since the last call."""

    def __init__(self, address: str, parsed: list[type[Any]]) -> None:
        self._address = address
        self._channels: dict[str, Any] = {}
        self.parsed = parsed

    async def code_of(self, visitor: tuple[str, Visitor], method: Any, request: Any, *, speaks: bool) -> StatusCode:
        """Of a stream, by its first message. `speaks`: it sends one to a method that takes many.

        Whoever sends to a call that has ended isn't told why it has.
        """
        name, shown = visitor
        if name not in self._channels:
            self._channels[name] = channel_to(self._address, answer_bytes=1 << 22, tls=shown.tls)
        channel = self._channels[name]
        self.parsed.clear()
        path, raw = f"/{method.containing_service.full_name}/{method.name}", request.SerializeToString()
        how: dict[str, Any] = {"metadata": shown.metadata, "timeout": TIMEOUT_S}
        try:
            if not method.server_streaming:
                await channel.unary_unary(path)(raw, **how)
                return StatusCode.OK
            if not method.client_streaming:
                return await _first_of(channel.unary_stream(path)(raw, **how))
            call = channel.stream_stream(path)(**how)
            if speaks:
                await call.write(raw)
            return await _first_of(call)
        except grpc.aio.AioRpcError as error:
            return error.code()

    async def __aenter__(self) -> "Port":
        return self

    async def __aexit__(self, *_: object) -> None:
        for channel in self._channels.values():
            await channel.close()


async def _first_of(call: Any) -> StatusCode:
    message = await call.read()
    if not isinstance(message, bytes):
        return StatusCode(await call.code())
    call.cancel()
    return StatusCode.OK


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[type[Any]]:
    """Of which kinds messages are made of bytes."""
    found: list[type[Any]] = []
    admitted: Any = vars(doors)["admitted"]

    def spied(kind: type[Any], raw: bytes) -> Any:
        found.append(kind)
        return admitted(kind, raw)

    monkeypatch.setattr(doors, "admitted", spied)
    return found


def at_the_door(caller: str, letter: str) -> bool:
    """Whether one is refused before anything is parsed. Who may do it elsewhere is refused by what a message names."""
    return letter in "u-" or (letter == "f" and caller != "elsewhere")


class Asked:
    """What was answered otherwise than it should be."""

    def __init__(self, port: Port) -> None:
        self.wrong: list[tuple[str, ...]] = []
        self._port = port
        self._served = methods()

    async def ask(self, visitor: tuple[str, Visitor], row: Row, letter: str) -> None:
        """As a letter of the table says, `then` of the row for a dot."""
        expected, name = CODES.get(letter, row.then), visitor[0]
        found = await self._port.code_of(visitor, self._served[row.method], row.request, speaks=letter == ".")
        if found != expected:
            self.wrong.append((row.method, name, found.name))
        if self._port.parsed and at_the_door(name, letter):
            self.wrong.append((row.method, name, "was parsed"))


async def test_every_method_answers_everybody_as_the_table_says(
    scene: Scene, parsed: list[type[Any]], tmp_path: Path
) -> None:
    rows = table(scene)
    assert {row.method for row in rows} == set(methods()), "each method has a row in who_may_table.py"
    visiting = Visiting(scene.database, Pki(tmp_path / "pki"), tmp_path)
    holders = await visiting.holders({name: ROLES[name] for name in CALLERS[1:]})
    strangers = await visiting.strangers()
    opening = listening(scene.database, visiting.pki, visiting.keys())
    async with opening as opened, Port(opened.people, parsed) as port:
        asked, met = Asked(port), set[str]()
        for row in rows:
            letters = dict(zip(CALLERS, row.who, strict=True))
            letters["user"] = letters["viewer"]
            for holder in holders.items():
                await asked.ask(holder, row, letters[holder[0]])
            for stranger in strangers.items() if row.method not in met else ():
                await asked.ask(stranger, row, letters["stranger"])
            met.add(row.method)
    assert not asked.wrong, "\n".join(map(str, asked.wrong))


async def test_at_the_port_of_members_certificates_alone_count(
    database_url: str, parsed: list[type[Any]], tmp_path: Path
) -> None:
    database = await Database.open(database_url, "cronring test")
    visiting = Visiting(database, Pki(tmp_path / "pki"), tmp_path)
    certified = await visiting.certified()
    assert set(certified) == set(CERTIFIED)
    async with listening(database, visiting.pki, None) as opened, Port(opened.members, parsed) as port:
        asked = Asked(port)
        for method, described in methods().items():
            letters = AT_MEMBERS.get(method, UNSERVED)
            row = Row(method, request_of(described), letters, TAKEN.get(method, StatusCode.OK))
            for name, letter in zip(CERTIFIED, letters, strict=True):
                await asked.ask((name, certified[name]), row, letter)
    await database.close()
    assert not asked.wrong, "\n".join(map(str, asked.wrong))


async def test_who_has_no_connection_hears_nothing_at_any_port(
    database_url: str, parsed: list[type[Any]], tmp_path: Path
) -> None:
    """Each method is tried: that it is the connection which fails isn't taken for granted."""
    database = await Database.open(database_url, "cronring test")
    visiting = Visiting(database, Pki(tmp_path / "pki"), tmp_path)
    nowhere = visiting.unconnected()
    async with listening(database, visiting.pki, None) as opened:
        for address, visitors in (
            (opened.people, nowhere),
            (opened.members, nowhere | visiting.uncertified() | visiting.forgers()),
        ):
            async with Port(address, parsed) as port:
                asked = Asked(port)
                for method, described in methods().items():
                    row = Row(method, request_of(described), "", StatusCode.UNAVAILABLE)
                    for visitor in visitors.items():
                        await asked.ask(visitor, row, "x")
                    assert not parsed
                assert not asked.wrong, "\n".join(map(str, asked.wrong))
    await database.close()


def request_of(method: Any) -> Any:
    """An empty one."""
    return message_factory.GetMessageClass(method.input_type)()
