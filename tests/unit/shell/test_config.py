import dataclasses
from pathlib import Path

import pytest

from cronring.controller.config import Address, ConfigError, ProcessConfig

URL = "postgresql://localhost/cronring"


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:7400", "127.0.0.1", 7400),
        ("controller-1:0", "controller-1", 0),
        ("[::1]:7400", "::1", 7400),
        (":7400", "", 7400),
        ("h:65535", "h", 65535),
    ],
)
def test_an_address_is_read_and_written(text: str, host: str, port: int) -> None:
    address = Address.parse("grpc_address", text)
    assert (address.host, address.port) == (host, port)
    assert str(address) == text


@pytest.mark.parametrize("text", ["", "host", "host:", "host:-1", "host:65536", "host:12x", "::1:7400", "host:1٣"])
def test_a_wrong_address_is_refused_by_name(text: str) -> None:
    with pytest.raises(ConfigError, match="grpc_address"):
        Address.parse("grpc_address", text)


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("database_url", " ", "CRONRING_DATABASE_URL"),
        ("grpc_address", "nowhere", "HOST:PORT"),
        ("http_address", "h:99999", "65535"),
        *[
            ("public_url", url, "it must be https://HOST")
            for url in (
                "http://c1",
                "https://c1/",
                "https://c1/x",
                "https://a@c1",
                "https://",
                "c1",
                "https://C1",
                "https://c1\n",
            )
        ],
        *[
            ("trace_url", url, "it must be like https://HOST/trace/{trace_id}")
            for url in (
                "https://traces.example/",
                "https://traces.example/{traceid}",
                "https://{trace_id}.example/",
                "https://{trace_id}",
                "https:///{trace_id}",
                "https://traces.example/a b/{trace_id}",
                "https://traces.example/{trace_id}\n",
                f"https://traces.example/{'x' * 1_000}/{{trace_id}}",
                "javascript:alert(1)//{trace_id}",
                "ftp://traces.example/{trace_id}",
                "/trace/{trace_id}",
            )
        ],
        ("advertise_address", "0.0.0.0:7400", "can connect to"),
        ("advertise_address", "host:0", "can connect to"),
        ("grpc_address", "0.0.0.0:7400", "advertise_address"),
        ("join", ("a:1", "b"), "join"),
        ("drain_timeout_s", -1.0, "from 0 to 86400"),
        ("drain_timeout_s", float("nan"), "from 0 to 86400"),
        ("name", "a b", "letters"),
        ("name", "x" * 64, "63 at most"),
        ("grpc_address", "10.0.0.1:7400", "set certs"),
        ("http_address", "0.0.0.0:7480", "set certs"),
        ("advertise_address", "controller-1:7400", "set certs"),
        ("certs", Path("certs"), "leave one of them out"),
        ("insecure", False, "cronring certs init"),
        ("cluster", "Big", "lower-case"),
    ],
)
def test_a_process_config_out_of_bounds_names_field_and_bound(field: str, value: object, says: str) -> None:
    with pytest.raises(ConfigError, match=f"{field} is|{field} |{field}:|certs is not|insecure is") as refused:
        dataclasses.replace(ProcessConfig(URL, insecure=True), **{field: value})  # type: ignore[arg-type]  # wrong on purpose
    assert says in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "https://traces.example/trace/{trace_id}",
        "http://[::1]:16686/trace/{trace_id}",
        "https://traces.example:8443?left=%5B%7B%22query%22:%22{trace_id}%22%7D%5D",
    ],
)
def test_where_traces_are(url: str) -> None:
    assert ProcessConfig(URL, insecure=True, trace_url=url).trace_url == url


def test_a_wildcard_needs_an_address_to_advertise() -> None:
    config = ProcessConfig(URL, certs=Path("certs"), grpc_address="0.0.0.0:7400", advertise_address="controller-1:7400")
    assert config.advertise_address == "controller-1:7400"
