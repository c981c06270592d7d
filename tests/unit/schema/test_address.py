"""What others say where they are is dialled only if it is a host and a port."""

import pytest

from cronring.schema.address import is_address


@pytest.mark.parametrize(
    "text", ["127.0.0.1:7400", "[::1]:7400", "[fe80::1%eth0]:1", "localhost:65535", "controller-1:7400", "a.b_c.d:1"]
)
def test_a_host_and_a_port(text: str) -> None:
    assert is_address(text)


@pytest.mark.parametrize(
    "text",
    [
        "", "a", ":1", "a:", "a:0", "a:65536", "a:1\n", "a\n:1", "a b:1", "a:1 ", "unix:/tmp/s", "unix:7400",
        "UNIX:7400", "unix-abstract:1", "dns:7400", "dns:///a:1", "dns://8.8.8.8/a:1", "ipv4:1", "ipv6:[::1]:1",
        "vsock:1", "http:80", "http://a:1", "a/b:1", "a@b:1", "a:1/x", "a:1?x", "::1:1", "[::1]", "[]:1", "-a:1",
        "\N{SNOWMAN}:1", "a:\u0661", "a" * 300 + ":1", "a:1,b:2", "a\x1b[2J:1", "a\0:1",
    ],
)  # fmt: skip
def test_nothing_else(text: str) -> None:
    assert not is_address(text)
