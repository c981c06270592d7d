"""What others say where they are is dialled only if it is a host and a port."""

import pytest

from cronring.schema.address import host_of, is_address, site_of


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


@pytest.mark.parametrize(
    ("peer", "host", "site"),
    [
        ("ipv4:10.0.0.7:4711", "10.0.0.7", "10.0.0.7"),
        ("ipv6:[::1]:7", "::1", "::/64"),
        ("ipv6:%5B2001:db8:1:2:3::4%5D:7", "2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("ipv6:%5Bfe80::1%25eth0%5D:7", "fe80::1%eth0", "fe80::/64"),
        ("ipv6:[::ffff:10.0.0.7]:7", "::ffff:10.0.0.7", "10.0.0.7"),
        ("unix:/run/x", "unix:/run/x", "unix"),
        ("unix:", "unix:", "unix"),
        ("", "", ""),
        ("ipv6:[nonsense]:7", "nonsense", "ipv6"),
    ],
)
def test_a_peer_is_a_host_to_people_and_a_site_to_limits(peer: str, host: str, site: str) -> None:
    assert (host_of(peer), site_of(peer)) == (host, site)
